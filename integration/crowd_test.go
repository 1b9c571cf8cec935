package integration

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/internal/harness"
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
	checkErr(t, "the last of all instances", last, unix.EMFILE)
	f, err := os.Open("/dev/null") // a descriptor is still to be had
	tier.Require(t, "a limit of inotify instances below that of open files", err == nil)
	f.Close()
	return release
}

// crowdID is a user who has no other mounts beside these: the instances are one's own.
const crowdID = 1 // daemon, whom every system has

// However many workspaces a user mounts, each works: those that get no inotify
// instance see what others change within a second, and say why.
func TestCrowdWithoutInstances(t *testing.T) {
	t.Parallel()
	const crowd = 3
	tier.RequireRoot(t)
	w := harness.New(t, harness.Options{UID: crowdID})
	release := holdInstances(t, crowdID)
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
		if watch.State != "exhausted" || !strings.Contains(watch.Reason, "max_user_instances") {
			t.Fatalf("mount %d: its watch is %q, because %q", i, watch.State, watch.Reason)
		}
		if sees(m, "") {
			t.Fatalf("mount %d has the file already", i)
		}
	}
	for i, m := range mounts {
		write(t, behind[i]+"/new", "by others")
		checkErr(t, "own", os.Chown(behind[i]+"/new", crowdID, crowdID), nil)
		harness.Eventually(t, "a file that others made", func() bool { return sees(m, "by others") })
	}
	release()
	if m := w.Mount(w.Workspace("@acme/later", "watch")); m.Status().Parts[0].Watch.State != "on" {
		t.Errorf("with instances to be had, a mount's watch is %q", m.Status().Parts[0].Watch.State)
	}
}
