package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A person is who sits at a terminal: types, and reads what comes.
type person struct {
	t              *testing.T
	keyboard, mine *os.File // the two ends of the terminal
	begin          unix.Termios

	mu   sync.Mutex
	seen bytes.Buffer // guarded by mu
	more chan struct{}
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{t: t, more: make(chan struct{}, 1)}
	var err error
	p.keyboard, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	assert.OK(t, err)
	fd := int(p.keyboard.Fd())
	assert.OK(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n := assert.Of(unix.IoctlGetInt(fd, unix.TIOCGPTN)).OK(t)
	p.mine, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	assert.OK(t, err)
	p.begin = p.settings()
	t.Cleanup(func() { p.mine.Close() }) // which ends the reading
	go func() {
		defer p.keyboard.Close()
		for b := make([]byte, 4096); ; {
			n, err := p.keyboard.Read(b)
			p.mu.Lock()
			p.seen.Write(b[:n])
			p.mu.Unlock()
			select {
			case p.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *person) settings() unix.Termios {
	p.t.Helper()
	now := assert.Of(unix.IoctlGetTermios(int(p.mine.Fd()), unix.TCGETS)).OK(p.t)
	return *now
}

func (p *person) types(text string) {
	p.t.Helper()
	assert.OK(p.t, assert.ErrOf(p.keyboard.WriteString(text)))
}

// reads waits for a text, and forgets all up to its end.
func (p *person) reads(text string) {
	p.t.Helper()
	for guard := time.After(assert.Hangs); ; {
		p.mu.Lock()
		before, after, found := strings.Cut(p.seen.String(), text)
		if found {
			p.seen.Reset()
			p.seen.WriteString(after)
		}
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-p.more:
		case <-guard:
			p.t.Fatalf("waited in vain for %q; got %q", text, before)
		}
	}
}

// runs starts a command on the terminal. ended waits for it, and finds the terminal
// as it was.
func (p *person) runs(signals chan os.Signal, command ...string) (ended func(want int)) {
	p.t.Helper()
	tier.RequireTools(p.t, "bwrap", "setsid", "bash")
	s := Spec{Command: command, Stdin: p.mine, Stdout: p.mine, Stderr: p.mine, Signals: signals, Terminal: Interactive(p.mine, p.mine),
		Env: [][2]string{{"PS1", "ready> "}, {"TERM", "dumb"}}}
	assert.Must(p.t, s.Terminal, "a terminal is none")
	var res Result
	var err error
	done := make(chan struct{})
	go func() { defer close(done); res, err = Run(p.t.Context(), s) }()
	return func(want int) {
		p.t.Helper()
		select {
		case <-done:
		case <-time.After(assert.Hangs):
			p.t.Fatal("the command does not end")
		}
		assert.True(p.t, err == nil && res.Code == want, "got", res, err, "want status", want)
		assert.Equal(p.t, p.settings(), p.begin, "settings of the terminal")
	}
}

// A shell on a terminal has job control: Ctrl-Z and Ctrl-C are for the program in
// front, and the shell is told. What a key does is waited for by the words of the
// program that it is for: one that comes while the shell hands the terminal over is
// lost.
func TestTerminalJobControl(t *testing.T) {
	p := newPerson(t)
	ended := p.runs(nil, "bash", "--norc", "--noprofile", "-i")
	p.reads("ready> ")
	p.types("sh -c 'echo be\"\"gun; exec cat'\r")
	p.reads("begun")
	p.types("\x1a")
	p.reads("Stopped")
	p.reads("ready> ")
	p.types("fg\r")
	p.reads("exec cat'")
	p.types("line\r")
	p.reads("line\r\nline\r\n") // by the terminal, and by the program
	p.types("\x03")
	p.reads("ready> ")
	p.types("echo status $?\r")
	p.reads("status 130")
	p.types("exit 7\r")
	ended(7)
}

// A terminal in the sandbox has the size of the caller's, also when that changes.
func TestTerminalSize(t *testing.T) {
	p := newPerson(t)
	size := func(rows, columns uint16) {
		assert.OK(t, unix.IoctlSetWinsize(int(p.keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}))
	}
	size(31, 99)
	signals := make(chan os.Signal, 1)
	ended := p.runs(signals, "sh", "-c", `trap 'stty size; exit 4' WINCH; stty size; while :; do sleep 0.05; done`)
	p.reads("31 99")
	size(40, 111)
	signals <- syscall.SIGWINCH
	p.reads("40 111")
	ended(4)
}

// Signals that this process gets reach the command, and what it does not read stays
// with it: it is a session of its own, with nothing of the caller's terminal.
func TestTerminalSignals(t *testing.T) {
	p := newPerson(t)
	signals := make(chan os.Signal, 1)
	ended := p.runs(signals, "sh", "-c", `trap 'exit 5' TERM; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : </dev/tty && echo begun; while :; do sleep 0.05; done`)
	p.reads("begun")
	p.types("never read\r")
	signals <- syscall.SIGTERM
	ended(5)
}

// When a command has ended, what was typed for it is not left for a shell.
func TestTerminalForgetsWhatWasTyped(t *testing.T) {
	p := newPerson(t)
	plain := assert.Of(os.Open(os.DevNull)).OK(t)
	defer plain.Close()
	assert.Contains(t, assert.ErrOf(openTerminal(plain, plain)).Error(), "the command gets no terminal: ")
	term := assert.Of(openTerminal(p.mine, p.mine)).OK(t)
	assert.OK(t, term.makeRaw())
	waiting := func() int {
		return assert.Of(unix.IoctlGetInt(int(p.mine.Fd()), unix.TIOCINQ)).OK(t)
	}
	p.types("rm -rf x\r")
	fds := []unix.PollFd{{Fd: int32(p.mine.Fd()), Events: unix.POLLIN}}
	for n, err := 0, error(nil); n == 0; n, err = unix.Poll(fds, int(assert.Hangs.Milliseconds())) {
		assert.Must(t, err == nil || err == unix.EINTR, err)
	}
	assert.Must(t, waiting() != 0, "nothing was typed")
	term.started()
	term.end()
	if n := waiting(); n != 0 || p.settings() != p.begin {
		t.Errorf("%d bytes are left, and the settings are %+v", n, p.settings())
	}
}

// A file or a pipe on either side is no terminal to work at.
func TestInteractive(t *testing.T) {
	p := newPerson(t)
	r, w, err := os.Pipe()
	assert.OK(t, err)
	defer r.Close()
	defer w.Close()
	for _, tt := range []struct {
		name    string
		in, out *os.File
		want    bool
	}{{"a terminal", p.mine, p.mine, true}, {"input is a pipe", r, p.mine, false}, {"output is a pipe", p.mine, w, false}, {"no input", nil, p.mine, false}} {
		assert.Equal(t, Interactive(tt.in, tt.out), tt.want, tt.name)
	}
}
