package mountpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/awake"
)

// Errors of Unmount, for errors.Is.
var (
	ErrBusy       = errors.New("the mount is in use")
	ErrNotMounted = errors.New("nothing is mounted there")
)

// askLimit is how long Stale waits for an answer.
const askLimit = time.Second

// Stale reports whether a FUSE mount has lost its daemon: the kernel answers
// at once with ENOTCONN then. A daemon that hangs is not stale. The question
// is one that the kernel does not answer from its cache, which outlives the
// daemon.
func Stale(path string) bool {
	answer := make(chan error, 1)
	go func() {
		var st unix.Statx_t
		answer <- unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_FORCE_SYNC, unix.STATX_BASIC_STATS, &st)
	}()
	err, _ := awake.Within(askLimit, answer)
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
}

// Unmount takes the topmost mount of path away; lazy detaches it at once and
// lets open files live on. A user who may not unmount is helped by
// fusermount3, as far as it is that user's own mount. Errors: ErrBusy, ErrNotMounted.
func Unmount(path string, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	err := unix.Unmount(path, flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("unmount %s: %w", path, ErrBusy)
	case errors.Is(err, unix.EPERM):
		return helped(path, lazy)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("unmount %s: %w", path, ErrNotMounted)
	}
	return fmt.Errorf("unmount %s: %w", path, err)
}

// Helper returns the path of fusermount3, or of its predecessor.
func Helper() (string, error) {
	for _, name := range []string{"fusermount3", "fusermount"} {
		if bin, err := exec.LookPath(name); err == nil {
			return bin, nil
		}
		for _, dir := range []string{"/usr/bin/", "/bin/"} {
			if _, err := os.Stat(dir + name); err == nil {
				return dir + name, nil
			}
		}
	}
	return "", errors.New("fusermount3 is not installed")
}

func helped(path string, lazy bool) error {
	bin, err := Helper()
	if err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	args := []string{"-u"}
	if lazy {
		args = append(args, "-z")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, append(args, "--", path)...)
	cmd.Stderr, cmd.Env = &said, []string{"LC_ALL=C"}
	if err := cmd.Run(); err != nil {
		return helperError(path, said.String(), err)
	}
	return nil
}

// helperError reads the output of fusermount3, which has no other way to report.
func helperError(path, said string, err error) error {
	switch said = strings.TrimSpace(said); {
	case strings.Contains(said, "busy"):
		return fmt.Errorf("unmount %s: %w", path, ErrBusy)
	case strings.Contains(said, "not found"), strings.Contains(said, "not mounted"):
		return fmt.Errorf("unmount %s: %w", path, ErrNotMounted)
	}
	return fmt.Errorf("unmount %s: %s (%w)", path, said, err)
}

// Abort ends the FUSE connection of a mount: every request that waits fails,
// also when its daemon hangs. It needs root or the mount's own user.
func Abort(m Mount) error {
	f, err := os.OpenFile("/sys/fs/fuse/connections/"+m.Connection()+"/abort", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("abort %s: %w", m.Path, err)
	}
	_, err = f.WriteString("1")
	return errors.Join(err, f.Close())
}
