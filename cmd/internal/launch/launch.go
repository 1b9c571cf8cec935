// Package launch puts a daemon in the background by running the program again,
// not by forking: a Go program has threads. The child reports through a pipe
// that it is ready, or why it is not, and the parent ends with that.
//
// It promises that the parent never says "done" before the child said that it
// is ready, that a child which dies without a report is reported with its exit status,
// and that an impatient Ctrl-C ends both.
//
//	err := launch.TakeEnvironment() // first of all
//	if child, ok := launch.Child(); ok {
//		... start ...
//		child.Ready(launch.Report{Mountpoint: "/mnt/ws"})
//	} else {
//		report, err := launch.Background(ctx, os.Args[1:])
//	}
package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// Errors of Background, for errors.Is.
var (
	ErrInterrupted = errors.New("interrupted")             // by a signal, before the child was ready or just after
	ErrDied        = errors.New("the daemon said no word") // the child ended without a report
)

// ChildVar tells the child which descriptor leads to its parent. It is set until
// Child is called.
const ChildVar = "_WSMOUNT_READY_FD"

// environmentAfter is the distance to the next descriptor. The child's environment comes
// through it: the environment that a program is started with stays readable in
// /proc/PID/environ for as long as it lives, even if it unsets it.
const environmentAfter = 1

// Report is sent by a child to its parent, once.
type Report struct {
	PID        int      `json:"pid,omitempty"`
	Workspace  string   `json:"workspace,omitempty"`
	Mountpoint string   `json:"mountpoint,omitempty"`
	ReadOnly   bool     `json:"readOnly,omitempty"`
	Already    bool     `json:"already,omitempty"` // there was nothing to do; the child has ended
	Notes      []string `json:"notes,omitempty"`   // for the user to know

	Error   string    `json:"error,omitempty"`
	Details []string  `json:"details,omitempty"`
	Advice  string    `json:"hint,omitempty"`
	Code    exit.Code `json:"exit,omitempty"`
}

// tieVar is set beside ChildVar where the child is tied.
const tieVar = "_WSMOUNT_TIE_FD"

// Process is this process as a background child.
type Process struct {
	pipe *os.File
	once sync.Once
	gone chan struct{}
}

// ParentGone is closed when the process that this one is tied to has ended; nil
// where it is not tied.
func (p *Process) ParentGone() <-chan struct{} { return p.gone }

// watch closes gone at the end of the pipe whose other end the parent has.
func (p *Process) watch(fd int) {
	unix.CloseOnExec(fd)
	p.gone = make(chan struct{})
	tie := os.NewFile(uintptr(fd), "tie")
	go func() {
		defer close(p.gone)
		_, _ = io.Copy(io.Discard, tie)
	}()
}

// Child returns this process as a child that Background started, and forgets
// how it learned that.
func Child() (*Process, bool) {
	fd, ok := readyFD()
	tie, err := strconv.Atoi(os.Getenv(tieVar))
	os.Unsetenv(ChildVar)
	os.Unsetenv(tieVar)
	if !ok {
		return nil, false
	}
	unix.CloseOnExec(fd)
	p := &Process{pipe: os.NewFile(uintptr(fd), "ready")}
	if err == nil && tie >= 3 {
		p.watch(tie)
	}
	return p, true
}

func readyFD() (int, bool) {
	fd, err := strconv.Atoi(os.Getenv(ChildVar))
	return fd, err == nil && fd >= 3
}

// TakeEnvironment gives a child of Background its environment, and does nothing
// in another process. It comes before any code that reads a variable.
func TakeEnvironment() error {
	fd, ok := readyFD()
	if !ok {
		return nil
	}
	pipe := os.NewFile(uintptr(fd+environmentAfter), "environment")
	defer pipe.Close()
	env, err := io.ReadAll(pipe)
	if err != nil {
		return err
	}
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			if err := os.Setenv(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// runtimeEnvironment are the variables that the Go runtime reads before
// TakeEnvironment: none of them is a secret.
func runtimeEnvironment() []string {
	var out []string
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "GO") {
			out = append(out, kv)
		}
	}
	return out
}

// Ready lets go of the parent's terminal, and then reports that all is up: a program that
// reads the parent's output to its end waits for no other process. Standard error goes to
// the file given from then on, which gets a crash's last words.
func (p *Process) Ready(r Report, crash *os.File) error {
	if err := unix.Dup3(int(crash.Fd()), 2, 0); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	r.PID = os.Getpid()
	return p.send(r)
}

// Done tells the parent that there was nothing to start. The child ends then.
func (p *Process) Done(r Report) error { return p.send(r) }

// Failed tells the parent why nothing will come.
func (p *Process) Failed(err error) {
	e := exit.From(err)
	_ = p.send(Report{Error: e.What, Details: e.Details, Advice: e.Advice, Code: e.Code})
}

func (p *Process) send(r Report) (err error) {
	p.once.Do(func() {
		err = json.NewEncoder(p.pipe).Encode(exactjson.Escape(r))
		err = errors.Join(err, p.pipe.Close())
	})
	return err
}

// Background runs the program again with the same arguments, in a session of
// its own, and waits for its report. The child's failure is returned as the error. A ctx that ends
// kills it.
func Background(ctx context.Context, args []string) (Report, error) {
	return background(ctx, args, nil, apart)
}

// BackgroundInGroup is Background for a child that stays in the process group of
// this process, by which an automounter recognizes its own processes (autofs(5)).
func BackgroundInGroup(ctx context.Context, args []string) (Report, error) {
	return background(ctx, args, nil, inGroup)
}

// Where a child of background belongs.
const (
	apart   = true  // in a session of its own
	inGroup = false // in the session and the process group of its parent
)

// Tied is Background for a child that serves this process: it learns by
// Process.ParentGone that this process has ended, however that came, or has
// closed tie.
func Tied(ctx context.Context, args []string) (report Report, tie io.Closer, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Report{}, nil, fmt.Errorf("launch: %w", err)
	}
	defer r.Close()
	if report, err = background(ctx, args, r, apart); err != nil {
		w.Close()
		return report, nil, err
	}
	return report, w, nil
}

// background passes the end of a pipe on to the child where it is not nil.
func background(ctx context.Context, args []string, tie *os.File, setsid bool) (Report, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Report{}, fmt.Errorf("launch: %w", err)
	}
	defer r.Close()
	envR, envW, err := os.Pipe()
	if err != nil {
		w.Close()
		return Report{}, fmt.Errorf("launch: %w", err)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(runtimeEnvironment(), ChildVar+"=3")
	cmd.ExtraFiles = []*os.File{w, envR}
	if tie != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, tie)
		cmd.Env = append(cmd.Env, tieVar+"=5")
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
	signals := make(chan os.Signal, 4) // from before there is a child that would be left alone
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err = cmd.Start()
	w.Close()
	envR.Close()
	if err == nil {
		_, err = io.WriteString(envW, strings.Join(os.Environ(), "\x00"))
	}
	envW.Close()
	if err != nil {
		return Report{}, fmt.Errorf("launch: %w", err)
	}
	stop := passSignals(signals, cmd.Process)
	report, err := await(r, cmd)
	if !stop() || report.Already {
		return report, err
	}
	if err == nil { // it was ready just before the signal reached it, and ends now
		_ = cmd.Wait()
		err = Interrupted()
	}
	return report, because(err, ErrInterrupted)
}

// Interrupted is the error of a start that was interrupted.
func Interrupted() *exit.Error {
	return exit.New(exit.Failed, "interrupted, and stopped again").Hint("run it again")
}

// because gives an error a cause that its text does not show.
func because(err, cause error) error {
	e := *exit.From(err)
	e.Err = errors.Join(cause, e.Err)
	return &e
}

// passSignals sends a Ctrl-C on to the child, which is in another session. stop
// ends that, and says whether there was one. A signal after that comes too late,
// and is dropped: the program is about to say that all is up, and to end.
func passSignals(signals <-chan os.Signal, child *os.Process) (stop func() bool) {
	end, passed := make(chan struct{}), make(chan bool)
	go func() {
		any := false
		for {
			select {
			case <-signals:
				any = true
				_ = child.Signal(syscall.SIGTERM) // it may have ended
			case <-end:
				passed <- any
				return
			}
		}
	}()
	return func() bool { close(end); return <-passed }
}

// await reads the child's report, or finds out how it died.
func await(pipe io.Reader, cmd *exec.Cmd) (Report, error) {
	var r Report
	if err := exactjson.Read(json.NewDecoder(pipe), &r); err != nil {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("it ended without a word")
		}
		return r, because(exit.New(exit.Failed, "the daemon did not start: %w", err).Hint("run it with -f to see more"), ErrDied)
	}
	if r.Error == "" {
		return r, nil
	}
	_ = cmd.Wait() // its exit code is in the report
	return r, &exit.Error{Code: r.Code, What: r.Error, Details: r.Details, Advice: r.Advice}
}
