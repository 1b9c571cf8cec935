package mountspec

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noIO names the variable that makes this test binary a child that parses
// under a kernel filter, and what the child does.
const noIO = "WSMOUNT_TEST_NOIO"

func TestMain(m *testing.M) {
	if what := os.Getenv(noIO); what != "" {
		parseSealed(what)
		syscall.Exit(0) // not os.Exit: its hooks write coverage
	}
	os.Exit(m.Run())
}

// TestParsingDoesNoIO parses, defines and prints in a process that the kernel
// kills when it opens or looks at a file, makes a socket or starts a program.
// That the kernel does so is checked with children that break the promise.
func TestParsingDoesNoIO(t *testing.T) {
	for _, c := range []struct {
		what   string
		killed bool
	}{{"parse", false}, {"file", true}, {"network", true}, {"program", true}} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), noIO+"="+c.what)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSYS
		if killed != c.killed || !killed && err != nil {
			t.Errorf("%s: killed %v, want %v: %v\n%s", c.what, killed, c.killed, err, out)
		}
	}
}

// parseSealed runs in the child.
func parseSealed(what string) {
	inputs := map[string][]byte{}
	for _, dir := range []string{"accept", "refuse"} {
		entries, err := os.ReadDir("testdata/" + dir)
		check(err)
		for _, e := range entries {
			inputs[e.Name()], err = os.ReadFile("testdata/" + dir + "/" + e.Name())
			check(err)
		}
	}
	check(seal())
	switch what {
	case "file":
		_, _ = os.Stat("testdata")
	case "network":
		_, _ = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	case "program":
		_ = exec.Command("/bin/true").Run()
	}
	for name, data := range inputs {
		v, _ := parseKind(name, data, Options{})
		if m, ok := v.(marshaler); ok {
			_, err := m.Marshal()
			check(err)
		}
		if w, ok := v.(*Workspace); ok {
			DefineWorkspace(*w, Options{})
			_, err := ResolveAddress(w.ID.String(), func(Address) (*Workspace, error) { return w, nil })
			check(err)
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}

// seal makes the kernel kill the process at the first system call that
// reaches for a file, a network or a program.
func seal() error {
	runtime.LockOSThread()
	forbidden := []uint32{
		unix.SYS_OPEN, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT,
		unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_ACCESS, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
		unix.SYS_READLINK, unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_UNLINK, unix.SYS_UNLINKAT,
		unix.SYS_MKDIR, unix.SYS_MKDIRAT, unix.SYS_RENAME, unix.SYS_RENAMEAT2, unix.SYS_SOCKET,
		unix.SYS_CONNECT, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_FORK, unix.SYS_VFORK,
	}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the system call's number
	for _, nr := range forbidden {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
