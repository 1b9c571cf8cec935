package harness

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// privateEnv says that this process has mounts of its own.
const privateEnv = "WSMOUNT_TEST_PRIVATE"

// Private runs the calling test again in a process that has the mounts of the
// machine to itself: what it mounts nobody else sees. There it returns true; in
// the first process the test is over, as the second one ended. args are further
// arguments. Needs root.
func Private(t *testing.T, args ...string) bool {
	t.Helper()
	if os.Getenv(privateEnv) != "" {
		return true
	}
	tier.RequireRoot(t)
	args = append([]string{"-test.v", "-test.run", "^" + regexp.QuoteMeta(t.Name()) + "$"}, args...)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), privateEnv+"=1", programEnv+"="+program, askerEnv+"="+asker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // until it has ended: the end of the thread that starts it would count
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	t.Logf("in a process of its own:\n%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// leaveOthers takes the mounts of tests that run beside a private one out of its
// copy of the machine's: they would not end as long as it has them.
func leaveOthers() {
	for _, at := range testrun.MountsBelow(testrun.Base()) {
		_ = unix.Unmount(at, unix.MNT_DETACH) // of what went meanwhile there is nothing to leave
	}
}
