package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// A Result is how a command ended.
type Result struct {
	Code     int  // its exit status, or 128 and the number of a signal
	TimedOut bool // it was ended because its time was over
}

// Run runs a command and returns when all its processes have ended. An error means that
// it was never started. A ctx that ends kills it.
func Run(ctx context.Context, s Spec) (res Result, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// bwrap ends with the thread that started it, and this one ends with the
		// goroutine, since it is never unlocked.
		runtime.LockOSThread()
		res, err = run(ctx, &s)
	}()
	<-done
	return res, err
}

func run(ctx context.Context, s *Spec) (Result, error) {
	// Bwrap would pass on the descriptors that this process inherited.
	if err := unix.CloseRange(firstFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return Result{}, fmt.Errorf("sandbox: close_range: %w", err)
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return Result{}, fmt.Errorf("sandbox: %w", err)
	}
	defer statusR.Close()
	var term *terminal
	if s.Terminal {
		if term, err = openTerminal(s.Stdin, s.Stdout); err != nil {
			statusW.Close()
			return Result{}, err
		}
		s.useTerminal(term)
		defer term.end()
		defer term.started() // if not before
	}
	ours := &files{}
	defer ours.close(s.Mounts)
	cmd, err := s.command(ctx, ours, statusW)
	if err != nil {
		statusW.Close()
		return Result{}, err
	}
	if term != nil {
		err = term.begin()
	}
	if err == nil {
		err = cmd.Start()
	}
	statusW.Close()
	if term != nil {
		term.started()
	}
	if err != nil {
		return Result{}, exit.New(exit.Failed, "sandbox: %w", err).Hint("look at %s", cmd.Path)
	}
	w := watch(ctx, s, term, statusR)
	_ = cmd.Wait() // its result is in its state, and in its reports
	return w.result(cmd.ProcessState)
}

// useTerminal has the command use a terminal instead of the caller's.
func (s *Spec) useTerminal(t *terminal) {
	if s.Stderr != nil && IsTerminal(s.Stderr) {
		s.Stderr = t.slave
	}
	s.Stdin, s.Stdout = t.slave, t.slave
}

// close closes the files that were opened for bwrap, not those of the caller.
func (f *files) close(mounts []Mount) {
	for _, file := range f.list {
		given := false
		for _, m := range mounts {
			given = given || m.Dir == file
		}
		if !given {
			file.Close()
		}
	}
}

// command prepares bwrap. Its arguments stand in memory, not in its command
// line, which every user can read: values of variables are among them.
func (s *Spec) command(ctx context.Context, f *files, status *os.File) (*exec.Cmd, error) {
	bwrap, err := exec.LookPath(helper)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	args, err := s.arguments(f)
	if err != nil {
		return nil, err
	}
	args = append(args, "--json-status-fd", f.add(status))
	told, err := f.content("args", []byte(strings.Join(args, "\x00")))
	if err != nil {
		return nil, err
	}
	argv := append([]string{"/bin/sh", "-c", s.Limits.script(), "sh"}, s.Command...)
	if _, err := exec.LookPath(controlling); s.Terminal && err == nil {
		argv = append([]string{controlling, "--ctty"}, argv...)
	}
	cmd := exec.CommandContext(ctx, bwrap, append([]string{"--args", told, "--"}, argv...)...)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.ExtraFiles = f.list
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.Stdin != nil {
		cmd.Stdin = reader(s.Stdin)
	}
	if s.Stdout != nil {
		cmd.Stdout = writer(s.Stdout)
	}
	if s.Stderr != nil {
		cmd.Stderr = writer(s.Stderr)
	}
	return cmd, nil
}

// reader and writer hide a regular file behind a pipe: with its descriptor, a
// command could open it anew through /proc/self/fd, with rights that it was not given.
func reader(f *os.File) io.Reader {
	if regular(f) {
		return struct{ io.Reader }{f}
	}
	return f
}

func writer(f *os.File) io.Writer {
	if regular(f) {
		return struct{ io.Writer }{f}
	}
	return f
}

func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// report is one line of --json-status-fd.
type report struct {
	ChildPID int  `json:"child-pid"`
	ExitCode *int `json:"exit-code"`
}

// readReports calls f for each line until bwrap has ended.
func readReports(r io.Reader, f func(report)) {
	for d := json.NewDecoder(r); ; {
		var line report
		if err := d.Decode(&line); err != nil {
			return
		}
		f(line)
	}
}

// notStarted is the error for a sandbox that bwrap could not make. Its own
// words are on standard error.
func notStarted(state *os.ProcessState) error {
	return exit.New(exit.Failed, "the sandbox could not be made: %s ended with %w", helper, errors.New(state.String())).
		Hint("its own words are above; `wsmount doctor` says whether this machine lets users have namespaces")
}
