package testrun

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// privateEnv says that this process has mounts of its own.
const privateEnv = "WSMOUNT_TEST_PRIVATE"

// Private runs the calling test again in a process that has the mounts of the
// machine to itself: what it mounts nobody else sees. There it returns true; in
// the first process the test is over, as the second one ended. args are further
// arguments. Needs root, and a TestMain of this package.
func Private(t *testing.T, args ...string) bool {
	t.Helper()
	return private(t, 0, args)
}

// PrivateNetwork is Private, of a process that has a network to itself, too: all addresses
// of 127.0.0.0/8, with every port, and none beside them.
func PrivateNetwork(t *testing.T) bool {
	t.Helper()
	if !private(t, unix.CLONE_NEWNET, nil) {
		return false
	}
	raiseLoopback(t)
	return true
}

// private is Private, with what else the process has to itself.
func private(t *testing.T, unshare uintptr, args []string) bool {
	t.Helper()
	if os.Getenv(privateEnv) != "" {
		return true
	}
	tier.RequireRoot(t)
	args = append([]string{"-test.v", "-test.run", "^" + regexp.QuoteMeta(t.Name()) + "$"}, args...)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), privateEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | unshare, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // until it has ended: the end of the thread that starts it would count
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	t.Logf("in a process of its own:\n%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// raiseLoopback has the addresses of a new network's loopback.
func raiseLoopback(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	assert.OK(t, err)
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	assert.OK(t, err)
	assert.OK(t, unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo))
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	assert.OK(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}

// leaveOthers takes, in a private process, the mounts of tests that run beside it out of
// its copy of the machine's: they would not end as long as it has them.
func leaveOthers() {
	if os.Getenv(privateEnv) == "" {
		return
	}
	for _, at := range MountsBelow(Base()) {
		_ = unix.Unmount(at, unix.MNT_DETACH) // of what went meanwhile there is nothing to leave
	}
}
