package sandbox

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long a command whose time is over may take to end by itself.
const grace = 2 * time.Second

// watcher passes signals on to a command and ends it when its time is over.
type watcher struct {
	inside  chan int      // the first process in the sandbox, as this one numbers it
	ended   chan struct{} // closed when bwrap has nothing more to report
	stopped chan struct{} // closed when nothing is passed on any more
	code    *int          // of the command; written before ended is closed
	killed  bool          // by us, before it had a status; written before stopped is closed
	expired bool
	term    *terminal // of the command; nil: it has none of its own
}

func watch(ctx context.Context, s *Spec, term *terminal, status io.Reader) *watcher {
	w := &watcher{term: term, inside: make(chan int, 1), ended: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(w.ended)
		readReports(status, func(r report) {
			if r.ChildPID > 0 {
				w.inside <- r.ChildPID
			}
			if r.ExitCode != nil {
				w.code = r.ExitCode
			}
		})
	}()
	go w.follow(ctx, s)
	return w
}

// follow waits for the command's first process, and then for signals and time.
func (w *watcher) follow(ctx context.Context, s *Spec) {
	defer close(w.stopped)
	var pid int
	select {
	case pid = <-w.inside:
	case <-w.ended:
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil { // it has ended already
		return
	}
	defer unix.Close(fd)
	var over <-chan time.Time
	if s.Limits.Time > 0 {
		t := time.NewTimer(s.Limits.Time)
		defer t.Stop()
		over = t.C
	}
	for {
		select {
		case <-w.ended:
			return
		case <-ctx.Done():
			w.kill(fd)
			return
		case sig := <-s.Signals:
			w.deliver(fd, pid, sig.(syscall.Signal))
		case <-over:
			if w.expired {
				w.kill(fd)
				return
			}
			w.expired = true
			w.deliver(fd, pid, unix.SIGTERM)
			over = time.After(grace)
		}
	}
}

// deliver sends a signal to the session of the command, as a terminal would. Its
// first process, which the others are children of, does not react to it. Before
// there is a session, the command has not begun.
func (w *watcher) deliver(fd, pid int, sig syscall.Signal) {
	if unix.PidfdSendSignal(fd, 0, nil, 0) != nil {
		return
	}
	var err error
	switch {
	case w.term != nil && sig == unix.SIGWINCH:
		w.term.resize()
	case w.term != nil:
		err = w.term.signal(sig)
	default:
		err = unix.Kill(-pid, sig)
	}
	if err != nil && sig != unix.SIGWINCH {
		w.kill(fd)
	}
}

// kill ends the first process in the sandbox, and with it all others.
func (w *watcher) kill(fd int) {
	w.killed = true
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may have ended
}

// result is called when bwrap has ended.
func (w *watcher) result(state *os.ProcessState) (Result, error) {
	<-w.ended
	<-w.stopped
	ws, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case w.code != nil:
		return Result{*w.code, w.expired}, nil
	case ws.Signaled():
		return Result{128 + int(ws.Signal()), w.expired}, nil
	case w.killed:
		return Result{128 + int(unix.SIGKILL), w.expired}, nil
	case state.ExitCode() > 128: // of its child, which a signal ended before there was a command
		return Result{state.ExitCode(), w.expired}, nil
	}
	return Result{}, notStarted(state)
}
