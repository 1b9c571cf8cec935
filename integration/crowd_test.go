package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// holdInstances takes all inotify instances that a user has, and gives them back.
func holdInstances(t *testing.T, uid uint32) (release func()) {
	t.Helper()
	var held []int
	var last error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for ever: the thread becomes the user's, and ends
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			last = errno
			return
		}
		for last == nil {
			var fd int
			if fd, last = unix.InotifyInit1(unix.IN_CLOEXEC); last == nil {
				held = append(held, fd)
			}
		}
	}()
	<-done
	released := false
	release = func() {
		for _, fd := range held {
			if !released {
				unix.Close(fd)
			}
		}
		released = true
	}
	t.Cleanup(release)
	assert.Is(t, last, unix.EMFILE, "the last of all instances")
	f, err := os.Open("/dev/null") // a descriptor is still to be had
	tier.Require(t, "a limit of inotify instances below that of open files", err == nil)
	f.Close()
	return release
}

// ownUser makes a user who nobody else on the machine is, also not in another run of the
// tests: inotify instances are one's own. Only this process and those that it starts know of
// the user, of whom fusermount3 wants a name.
func ownUser(t *testing.T) (uid int) {
	t.Helper()
	uid = 2_000_000_000 + os.Getpid() // beyond what systemd gives to containers
	const known = "/etc/passwd"
	users := assert.Of(os.ReadFile(known)).OK(t, "users")
	file := t.TempDir() + "/passwd"
	assert.Is(t, os.Chmod(filepath.Dir(file), 0o755), nil, "chmod")
	write(t, file, fmt.Sprintf("%s\ncrowd:x:%d:%d::/:/bin/sh\n", strings.TrimSuffix(string(users), "\n"), uid, uid))
	assert.Is(t, unix.Mount(file, known, "", unix.MS_BIND, ""), nil, "mount of the users")
	return uid
}

// However many workspaces a user mounts, each works: those that get no inotify
// instance see what others change within a second, and say why.
func TestCrowdWithoutInstances(t *testing.T) {
	t.Parallel()
	const crowd = 3
	if !testrun.Private(t) {
		return
	}
	crowdID := ownUser(t)
	w := harness.New(t, harness.Options{UID: uint32(crowdID)})
	release := holdInstances(t, uint32(crowdID))
	sees := func(m *harness.Mount, want string) bool { // as the user: nobody else may look
		out, err := w.Command(t.Context(), "cat", m.Dir+"/new").Output()
		return err == nil && strings.HasPrefix(string(out), want)
	}
	var mounts []*harness.Mount
	var behind []string
	for i := range crowd {
		behind = append(behind, w.Workspace("@acme/x"+itoa(i), "watch"))
		mounts = append(mounts, w.Mount(behind[i]))
	}
	for i, m := range mounts {
		watch := m.Status().Parts[0].Watch
		assert.Must(t, watch.State == "exhausted" && strings.Contains(watch.Reason, "max_user_instances"), "mount", i, "its watch is", watch.State, "because", watch.Reason)
		assert.Must(t, !sees(m, ""), "mount", i, "has the file already")
	}
	for i, m := range mounts {
		write(t, behind[i]+"/new", "by others")
		assert.Is(t, os.Chown(behind[i]+"/new", crowdID, crowdID), nil, "own")
		harness.Eventually(t, "a file that others made", func() bool { return sees(m, "by others") })
	}
	release()
	m := w.Mount(w.Workspace("@acme/later", "watch"))
	harness.Eventually(t, "the watch of a mount, with instances to be had, is on", func() bool {
		return m.Status().Parts[0].Watch.State == "on" // "partial" until the tree has been walked
	})
}
