package posix

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Users and groups that own nothing on an ordinary machine.
const (
	alice = 65531
	bob   = 65532
	staff = 65530 // a group
)

// as runs f with the effective ids of a user, on this thread only, and without
// root's capabilities. The real ids stay root's, so that there is a way back.
func (t *T) as(uid, gid int, groups []int, f func()) {
	t.ok("setgroups", setgroups(groups))
	t.ok("setresgid", setres(unix.SYS_SETRESGID, gid))
	t.ok("setresuid", setres(unix.SYS_SETRESUID, uid))
	defer func() {
		err := setres(unix.SYS_SETRESUID, 0)
		if err == nil {
			err = setres(unix.SYS_SETRESGID, 0)
		}
		if err == nil {
			err = setgroups(nil)
		}
		if err != nil {
			panic(fmt.Sprintf("no way back to root: %v", err))
		}
	}()
	f()
}

// setres sets the effective id of this thread. The functions of package unix
// set it for the whole process.
func setres(call uintptr, id int) error {
	const keep = ^uintptr(0)
	if _, _, e := unix.RawSyscall(call, keep, uintptr(id), keep); e != 0 {
		return e
	}
	return nil
}

func setgroups(groups []int) error {
	list := make([]uint32, len(groups)+1)
	for i, g := range groups {
		list[i] = uint32(g)
	}
	return rawSetgroups(list[:len(groups)+1], len(groups))
}

// childEnv carries a run's directory and options to the child process.
const childEnv = "POSIX_SUITE_CHILD"

type childRun struct {
	Dir string
	Options
}

// RunAs runs the suite as another user (user and group id, no further group)
// in a process of its own. The calling test package has a test that is called
// TestPosixChild and calls Child. Only root can do this.
func RunAs(t *testing.T, dir string, id uint32, o Options) {
	t.Helper()
	runApart(t, dir, &syscall.Credential{Uid: id, Gid: id}, o)
}

// RunApart is Run in a process of its own, which starts no other programs beside the
// suite's own: those would have what a case has open for a moment, after its last close.
func RunApart(t *testing.T, dir string, o Options) {
	t.Helper()
	runApart(t, dir, nil, o)
}

func runApart(t *testing.T, dir string, as *syscall.Credential, o Options) {
	t.Helper()
	run, err := json.Marshal(childRun{dir, o})
	if err != nil {
		t.Fatal(err)
	}
	// The test binary lies in a directory that only its owner may pass; the
	// link in /proc leads there all the same.
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPosixChild$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childEnv+"="+string(run), "HOME=/", "TMPDIR=/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // until it has ended: the end of the thread that starts it would count
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestPosixChild/")) {
		t.Errorf("in a process of its own: %v\n%s", err, failedLines(out))
	}
}

// IsChild says whether RunAs started this process, in which TestMain should
// only run the tests.
func IsChild() bool { return os.Getenv(childEnv) != "" }

// Child is the body of TestPosixChild. It does nothing unless RunAs started
// this process.
func Child(t *testing.T) {
	env := os.Getenv(childEnv)
	if env == "" {
		return
	}
	var run childRun
	if err := json.Unmarshal([]byte(env), &run); err != nil {
		t.Fatal(err)
	}
	Run(t, run.Dir, run.Options)
}

// failedLines leaves out what passed.
func failedLines(out []byte) string {
	var b strings.Builder
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		if !strings.HasPrefix(line, "--- PASS") && !strings.HasPrefix(line, "=== ") {
			b.WriteString(sc.Text() + "\n")
		}
	}
	return b.String()
}

// user runs f as an ordinary user who owns the case's directory: as alice when
// the suite runs as root.
func (t *T) user(f func()) {
	if os.Geteuid() != 0 {
		f()
		return
	}
	t.ok("chown", os.Chown(t.Dir, alice, alice))
	t.as(alice, alice, nil, f)
}
