package sandbox

import (
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// controlling is a program that makes the terminal at standard input that of a new session of
// the command (setsid(1)); without it there is no job control.
const controlling = "/usr/bin/setsid"

// IsTerminal reports whether a person sits at the other end of a file.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Interactive reports whether a command with these files is one that a person works
// with, and gets a terminal of its own: both are a terminal, of which this process is
// not in the background.
func Interactive(in, out *os.File) bool {
	if in == nil || out == nil || !IsTerminal(in) || !IsTerminal(out) {
		return false
	}
	front, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err != nil || front == unix.Getpgrp() // an error: it is not this session's
}

// Attended reports whether a person sees what a command with these files does, or types
// for it: one of them is a terminal (bash | tee log; echo x | vim -).
func Attended(in, out *os.File) bool {
	return in != nil && IsTerminal(in) || out != nil && IsTerminal(out)
}

// FlushTyped discards input that was typed at a terminal and not read.
func FlushTyped(f *os.File) {
	inForeground(func() { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) })
}

// inForeground calls change, which changes a terminal and would stop this process if it is
// in the background by now.
func inForeground(change func()) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	change()
}

// A terminal replaces the caller's for a command: a pair of its own,
// with the caller's settings and size. The caller's is raw meanwhile: typed input,
// Ctrl-C too, goes to the command as it is.
type terminal struct {
	in, out       *os.File // the caller's
	master, slave *os.File
	was           unix.Termios // settings of in
	raw           bool
	ended         *os.File      // closed to end the copying of typed input
	typed, shown  chan struct{} // closed when nothing is copied any more
}

// openTerminal makes a terminal like the caller's. It is the command's with begin.
func openTerminal(in, out *os.File) (*terminal, error) {
	t := &terminal{in: in, out: out}
	was, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return nil, noTerminal(err)
	}
	t.was = *was
	if t.master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, noTerminal(err)
	}
	if err = t.openSlave(); err != nil {
		t.master.Close()
		return nil, noTerminal(err)
	}
	t.resize()
	return t, nil
}

func noTerminal(err error) error {
	return exit.New(exit.Failed, "the command gets no terminal: %w", err).
		Hint("redirect its standard input or output to run it without one")
}

func (t *terminal) openSlave() error {
	fd := int(t.master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	t.slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	return unix.IoctlSetTermios(int(t.slave.Fd()), unix.TCSETS, &t.was)
}

// resize gives it the size of the caller's. The kernel sends the command SIGWINCH for it.
func (t *terminal) resize() {
	size, err := unix.IoctlGetWinsize(int(t.in.Fd()), unix.TIOCGWINSZ)
	if err == nil {
		_ = unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, size)
	}
}

// begin makes the caller's terminal raw and copies between the two until end.
func (t *terminal) begin() error {
	stop, ended, err := os.Pipe()
	if err != nil {
		return noTerminal(err)
	}
	t.ended = ended
	if err := t.makeRaw(); err != nil {
		return errors.Join(noTerminal(err), stop.Close(), ended.Close())
	}
	t.typed, t.shown = make(chan struct{}), make(chan struct{})
	go t.copyTyped(stop)
	go t.copyShown()
	return nil
}

// makeRaw is cfmakeraw(3).
func (t *terminal) makeRaw() error {
	raw := t.was
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	err := unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETSW, &raw)
	t.raw = err == nil
	return err
}

// restore gives the caller's terminal its settings back, without input that was typed and
// not read: that was meant for the command.
func (t *terminal) restore() {
	if !t.raw {
		return
	}
	t.raw = false
	inForeground(func() { _ = unix.IoctlSetTermios(int(t.in.Fd()), unix.TCSETSF, &t.was) })
}

// started is called when the command has the slave, or will never have it.
func (t *terminal) started() { t.slave.Close() }

// end is called when the command has ended. Its last output is shown first.
func (t *terminal) end() {
	if t.typed != nil {
		<-t.shown
		t.ended.Close()
		<-t.typed
	}
	t.restore()
	t.master.Close()
}

// copyTyped waits for the caller's terminal and for the end together, so that it does
// not take input that is typed after that.
func (t *terminal) copyTyped(stop *os.File) {
	defer close(t.typed)
	defer stop.Close()
	b := make([]byte, 4096)
	for {
		fds := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}, {Fd: int32(stop.Fd())}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) || fds[1].Revents != 0 {
			return
		} else if err != nil || fds[0].Revents == 0 {
			continue
		}
		n, err := t.in.Read(b)
		if n > 0 {
			_, err = t.master.Write(b[:n])
		}
		if err != nil { // the caller's terminal has hung up, or the command has ended
			_ = t.signal(unix.SIGHUP) // it may have ended
			return
		}
	}
}

// copyShown copies until every process with the slave has ended. When the caller's
// terminal is gone it goes on, so that none of them waits for it.
func (t *terminal) copyShown() {
	defer close(t.shown)
	b := make([]byte, 32<<10)
	for {
		n, err := t.master.Read(b)
		if n > 0 {
			_, _ = t.out.Write(b[:n])
		}
		if err != nil { // EIO: there is no slave any more
			return
		}
	}
}

// signal sends a signal to the foreground processes of the terminal, and to the
// leader of its session one that is to end all. An error says that there is no
// session yet.
func (t *terminal) signal(sig syscall.Signal) error {
	front, err := unix.IoctlGetInt(int(t.master.Fd()), unix.TIOCGPGRP)
	if err != nil || front <= 0 {
		return errors.Join(err, unix.ESRCH)
	}
	leader, err := unix.IoctlGetInt(int(t.master.Fd()), unix.TIOCGSID)
	if err == nil && leader > 0 && leader != front && (sig == unix.SIGHUP || sig == unix.SIGTERM) {
		_ = unix.Kill(-leader, sig)
	}
	return unix.Kill(-front, sig)
}
