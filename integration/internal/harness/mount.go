package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

// A Mount is a mounted workspace, served by a process of its own.
type Mount struct {
	w    *World
	args []string
	Dir  string // the mount point
	PID  int

	state string // the directory of its daemon, once that was asked
}

// A Status is what the tests read of `wsmount status --json`.
type Status struct {
	State       string
	StateDir    string
	Log         string
	PID         int
	ReadOnly    bool
	Unverified  bool
	Panics      int
	OpenFiles   []struct{ Path, IOMode string }
	Passthrough struct {
		On     bool
		Reason string
	}
	Parts []struct {
		Name, At, Provider, Mode, Path, Unavailable string
		ReadOnly                                    string
		Refused                                     int
		Watch                                       struct{ State, Reason string }
		IOMode                                      string
		HeldBack, Conflicts                         int
		Unsaved                                     struct {
			Files, Names int
			Bytes        int64
		}
		WorkingCopy *WorkingCopy
	}
}

// A WorkingCopy is what status says of the working copy of a remote store.
type WorkingCopy struct {
	Retrying           int
	LastError          string
	UnreachableSeconds float64
	Stale              bool
	Held               []struct{ Path, Reason string }
	Halted             []string
	UnpushedCommits    int
	Branch             string
	Branches           []struct {
		Name, PRURL, Refused string
		Commits              int
		Pushed               bool
		PRWantedSince        time.Time
	}
	Requests map[string]struct{ Count, Sent, Received int64 }
	Clone    *struct {
		Kind, Paused, Error string
		Missing             int
	}
}

// Mount mounts a workspace (a directory or an address) at a new directory,
// and unmounts it when the test ends.
func (w *World) Mount(workspace string, flags ...string) *Mount {
	w.t.Helper()
	dir, err := os.MkdirTemp(w.Dir, "mnt-")
	if err != nil {
		w.t.Fatal(err)
	}
	w.own(dir, 0o755)
	m := &Mount{w: w, Dir: dir, args: append([]string{"mount", workspace, dir}, flags...)}
	w.t.Cleanup(m.end)
	m.Start()
	return m
}

// Start mounts, also again after Stop or Kill.
func (m *Mount) Start() {
	m.w.t.Helper()
	m.w.MustRun(m.args...)
	m.PID = m.Status().PID
}

// TryStart is Start, where that may fail.
func (m *Mount) TryStart() Result { return m.w.Run(m.args...) }

// Stop unmounts by the program's own command and waits until its process ended.
func (m *Mount) Stop() {
	m.w.t.Helper()
	m.w.MustRun("umount", m.Dir)
	m.WaitGone()
}

// Kill kills the daemon, which gets no chance to do anything.
func (m *Mount) Kill() {
	m.w.t.Helper()
	if err := syscall.Kill(m.PID, syscall.SIGKILL); err != nil {
		m.w.t.Fatal(err)
	}
	m.WaitGone()
}

// Signal sends the daemon a signal.
func (m *Mount) Signal(s syscall.Signal) {
	m.w.t.Helper()
	if err := syscall.Kill(m.PID, s); err != nil {
		m.w.t.Fatal(err)
	}
}

// Hang stops the daemon, every thread of it, so that it answers nothing.
func (m *Mount) Hang() {
	m.w.t.Helper()
	m.Signal(syscall.SIGSTOP)
	Eventually(m.w.t, "every thread of the daemon stops", func() bool { return testrun.Stopped(m.PID) })
}

// WaitGone waits until the daemon's process has ended, and the mount with it: what asks a
// mount whose daemon is ending waits for that, or takes it for a living one.
func (m *Mount) WaitGone() {
	m.w.t.Helper()
	pid := m.PID
	m.PID = 0
	Eventually(m.w.t, "the daemon ends", func() bool {
		return !testrun.Alive(pid)
	})
}

// Status asks the program what it says of this mount, and from then on the daemon, which
// says the same to all: who waits for something asks often, and programs take long to
// begin.
func (m *Mount) Status() Status {
	m.w.t.Helper()
	if m.state != "" {
		if s, err := m.askDaemon(); err == nil {
			return s
		}
	}
	var s Status
	if err := json.Unmarshal([]byte(m.w.MustRun("status", "--json", m.Dir)), &s); err != nil {
		m.w.t.Fatalf("status: %v", err)
	}
	m.state = s.StateDir
	return s
}

// askDaemon is what the daemon of the mount answers.
func (m *Mount) askDaemon() (s Status, err error) {
	dir, err := os.Open(m.state) // whose path may be too long for that of a socket
	if err != nil {
		return s, err
	}
	defer dir.Close()
	c := http.Client{Timeout: Hangs, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd()))
		}}}
	r, err := c.Get("http://daemon/v1/status")
	if err != nil {
		return s, err
	}
	defer r.Body.Close()
	if err = json.NewDecoder(r.Body).Decode(&s); err == nil && (r.StatusCode != http.StatusOK || s.PID != m.PID) {
		err = errors.New("not the daemon of this mount")
	}
	return s, err
}

// end unmounts what is still mounted, and reports a contained panic.
func (m *Mount) end() {
	if m.PID == 0 {
		return
	}
	if m.w.t.Failed() {
		r := m.w.Run("status", m.Dir)
		m.w.t.Logf("status %s: %s%s", m.Dir, r.Out, r.Err)
	}
	if s := m.Status(); s.Panics != 0 {
		m.w.t.Errorf("the daemon contained %d panics", s.Panics)
	}
	m.Stop()
}

// Hangs is assert.Hangs.
const Hangs = assert.Hangs

// Eventually is assert.Eventually.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	assert.Eventually(t, what, holds)
}
