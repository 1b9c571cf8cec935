package mountpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// maxStale bounds how many dead mounts one on another Prepare takes away.
const maxStale = 16

// ErrMounted says that a living mount is at the mount point already.
var ErrMounted = errors.New("already mounted")

// Check reports whether path can be mounted on, and changes nothing: it is a
// directory, and not a living FUSE mount. stale says that a dead wsmount mount
// lies at it, which Clean takes away. The result is the path with its symbolic
// links followed.
func Check(path string) (resolved string, stale bool, err error) {
	table, err := ReadTable()
	if err != nil {
		return "", false, err
	}
	if resolved, err = table.Resolve(path); err != nil {
		return "", false, err
	}
	if m, ok := table.At(resolved); ok && m.FUSE() {
		return checkMounted(resolved, m)
	}
	return resolved, false, checkDirectory(resolved)
}

func checkMounted(path string, m Mount) (string, bool, error) {
	switch {
	case m.Ours() && Stale(path):
		return path, true, nil
	case m.Ours():
		return path, false, exit.New(exit.Failed, "%s: %w: %s", path, ErrMounted, m.Source).
			Hint("unmount it with `wsmount umount %s`, or give --if-not-mounted", path)
	}
	return path, false, exit.New(exit.Failed, "%s: %w: %s of type %s", path, ErrMounted, m.Source, m.Type).
		Hint("unmount it with `fusermount3 -u %s`, or choose another directory", path)
}

func checkDirectory(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return exit.New(exit.Usage, "mount point %s does not exist", path).Hint("create it with `mkdir -p %s`", path)
	case err != nil:
		return exit.New(exit.Failed, "mount point: %w", err).Hint("choose a directory that you may enter")
	case !fi.IsDir():
		return exit.New(exit.Usage, "mount point %s is not a directory", path).Hint("choose an empty directory")
	}
	return mayMountOn(path, fi)
}

// mayMountOn reports, earlier and more clearly, the directories that fusermount3 refuses a
// user who is not root (fusermount3(1)): one that the user may not write, and a
// sticky one, such as /tmp, of another user.
func mayMountOn(path string, fi os.FileInfo) error {
	owner, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() == 0 {
		return nil
	}
	foreign := fi.Mode()&os.ModeSticky != 0 && int(owner.Uid) != os.Getuid()
	if !foreign && unix.Access(path, unix.W_OK) == nil {
		return nil
	}
	return exit.New(exit.Usage, "mount point %s is not yours to write, and only root mounts there", path).
		Hint("choose a directory of your own, or mount as root")
}

// AllowsOthers reports whether a user of this machine may let other users into
// the user's mounts: root always, any other by fuse.conf(5), which is read at conf.
func AllowsOthers(uid int, conf string) bool {
	if uid == 0 {
		return true
	}
	b, err := os.ReadFile(conf)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if strings.TrimSpace(line) == "user_allow_other" {
			return true
		}
	}
	return false
}

// FuseConf is the configuration of fusermount3.
const FuseConf = "/etc/fuse.conf"

// Clean takes dead wsmount mounts away from path and returns how many.
func Clean(path string) (int, error) {
	for n := range maxStale {
		table, err := ReadTable()
		if err != nil {
			return n, err
		}
		if m, ok := table.At(path); !ok || !m.Ours() || !Stale(path) {
			return n, nil
		}
		if err := Unmount(path, true); err != nil {
			return n, fmt.Errorf("clean up the dead mount: %w", err)
		}
	}
	return maxStale, nil
}

// Apart refuses a mount point that lies in a directory that is to be mounted,
// or around it: the daemon would serve itself. Sameness is by device and inode
// as well as by name, so that a bind mount does not hide it.
func Apart(mountpoint, dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("mountpoint: %w", err)
	}
	inside, err := under(mountpoint, real)
	if err != nil {
		return err
	}
	around, err := under(real, mountpoint)
	if errors.Is(err, unix.ENOTCONN) { // a dead mount: its directory is looked at once it is gone
		around, err = Within(real, mountpoint), nil
	}
	if err != nil {
		return err
	}
	if !inside && !around {
		return nil
	}
	where := "inside"
	if !inside {
		where = "above"
	}
	return exit.New(exit.Usage, "mount point %s lies %s %s, which it would show", mountpoint, where, real).
		Hint("choose a directory that is neither inside the workspace nor above it")
}

// under reports whether path is dir or has it among its parents.
func under(path, dir string) (bool, error) {
	var top unix.Stat_t
	if err := unix.Stat(dir, &top); err != nil {
		return false, fmt.Errorf("mountpoint: stat %s: %w", dir, err)
	}
	for p := path; ; p = filepath.Dir(p) {
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err == nil && st.Dev == top.Dev && st.Ino == top.Ino {
			return true, nil
		}
		if p == "/" || p == "." {
			return false, nil
		}
	}
}

// Outside refuses a directory of a workspace that lies in a mount of wsmount, under any name:
// its locks are not those of the files that the mount shows. So a program that has these by another
// path does not wait, and the writes of one of the two are lost.
func Outside(workspace, dir string) error {
	table, err := ReadTable()
	if err != nil {
		return err
	}
	m, ok := table.Around(dir)
	if !ok || !m.Ours() {
		return nil
	}
	return exit.New(exit.Failed, "%s: its directory %s lies in the mount of %s at %s, and who has the same files by another way does not see its locks", workspace, dir, m.Source, m.Path).
		Hint("use it there, or name the directory that is mounted (`wsmount status %s` says which); --read-only lets it be read", m.Path)
}
