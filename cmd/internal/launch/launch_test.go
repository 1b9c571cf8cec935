package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// TestMain is the child too: Background runs this binary again.
func TestMain(m *testing.M) {
	if err := TakeEnvironment(); err != nil {
		os.Exit(9)
	}
	if child, ok := Child(); ok {
		os.Exit(beChild(child, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func beChild(child *Process, args []string) int {
	if os.Getenv(ChildVar) != "" {
		return 9
	}
	switch args[0] {
	case "ready":
		crash, err := os.OpenFile(args[1], os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 9
		}
		if err := child.Ready(Report{Mountpoint: "/mnt/ws", Notes: []string{"a note"}}, crash); err != nil {
			return 9
		}
		os.Stderr.WriteString("last words")
	case "tied":
		if err := child.Done(Report{Mountpoint: "/mnt/ws"}); err != nil {
			return 9
		}
		<-child.ParentGone()
		os.WriteFile(args[1], nil, 0o600)
	case "failed":
		child.Failed(exit.New(exit.Denied, "not granted").Hint("ask the host"))
		return int(exit.Denied)
	case "environment":
		started, err := os.ReadFile("/proc/self/environ")
		child.Failed(exit.New(exit.Failed, "has %q, was started with a secret: %v, %v", os.Getenv("LAUNCH_TEST"), strings.Contains(string(started), "hunter2"), err))
	case "killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "interrupt":
		syscall.Kill(os.Getppid(), syscall.SIGTERM) // which passes it on
		time.Sleep(time.Minute)
	case "session":
		sid, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
		if int(sid) != os.Getpid() {
			child.Failed(exit.New(exit.Failed, "in the session of its parent"))
			return 1
		}
		child.Failed(exit.New(exit.Conflict, "its own session"))
	}
	return 0
}

func TestBackground(t *testing.T) {
	crash := t.TempDir() + "/crash"
	r, err := Background(t.Context(), []string{"ready", crash})
	assert.Must(t, err == nil && r.Mountpoint == "/mnt/ws" && len(r.Notes) == 1 && r.PID != 0, r, err)
	assert.OK(t, assert.ErrOf(syscall.Wait4(r.PID, nil, 0, nil)))
	assert.Of(os.ReadFile(crash)).Equal(t, []byte("last words"), "after Ready, standard error went elsewhere")
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name string
		code exit.Code
		what string
	}{
		{"failed", exit.Denied, "not granted"},
		{"killed", exit.Failed, "the daemon did not start: signal: killed"},
		{"silent", exit.Failed, "without a word"},
		{"session", exit.Conflict, "its own session"},
	}
	for _, tt := range tests {
		_, err := Background(t.Context(), []string{tt.name})
		e := exit.From(err)
		assert.True(t, e != nil && e.Code == tt.code && strings.Contains(e.What, tt.what), tt.name, "got", e, "want", tt.code, "with", tt.what)
		if died := tt.name == "killed" || tt.name == "silent"; errors.Is(err, ErrDied) != died {
			t.Errorf("%s: died: got %v, want %v", tt.name, !died, died)
		}
	}
}

func TestInterrupted(t *testing.T) {
	_, err := Background(t.Context(), []string{"interrupt"})
	e := exit.From(err)
	assert.True(t, errors.Is(err, ErrInterrupted) && e.Code == exit.Failed, err)
}

func TestNotAChild(t *testing.T) {
	for _, value := range []string{"", "x", "-1", "2"} {
		t.Setenv(ChildVar, value)
		_, ok := Child()
		assert.False(t, ok, value, "made a child")
	}
}

// What a program was started with can be read in /proc for as long as it runs.
func TestEnvironmentIsHandedOver(t *testing.T) {
	t.Setenv("LAUNCH_TEST", "hunter2\xff=")
	_, err := Background(t.Context(), []string{"environment"})
	e := exit.From(err)
	assert.True(t, e != nil && e.What == `has "hunter2\xff=", was started with a secret: false, <nil>`, err)
}

// A tied child learns that its parent is gone, and not before.
func TestTied(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	report, tie, err := Tied(t.Context(), []string{"tied", told})
	assert.Must(t, err == nil && report.Mountpoint == "/mnt/ws", report, err)
	assert.True(t, assert.ErrOf(os.Stat(told)) != nil, "it believes that its parent is gone")
	tie.Close()
	assert.Eventually(t, "it learns that its parent is gone", func() bool { return assert.ErrOf(os.Stat(told)) == nil })
}
