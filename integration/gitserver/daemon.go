package gitserver

import (
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/integration/internal/port"
)

// Pushable are the options of a Daemon that takes pushes.
const Pushable = "--enable=receive-pack"

// Daemon serves the repositories of a Server over git://: it runs `git daemon` for
// each connection to a port of its own, as inetd would.
type Daemon struct {
	Addr string // host:port
	URL  string // without a slash at its end

	of   *Server
	port *port.Held
	more []string
	wait sync.WaitGroup

	mu       sync.Mutex   // guards what follows
	listener net.Listener // nil: it is away
	conns    map[net.Conn]bool
	heard    bytes.Buffer
	hook     func(conn net.Conn) bool
}

// LaunchDaemon serves at a port of its own; more is further options of the program.
// The error is fs.ErrNotExist where git has no daemon.
func (s *Server) LaunchDaemon(more ...string) (*Daemon, error) {
	if _, err := os.Stat(filepath.Join(s.parts, "git-daemon")); err != nil {
		return nil, err
	}
	held, err := port.Hold()
	if err != nil {
		return nil, err
	}
	d := &Daemon{Addr: held.Addr, port: held, of: s, more: more, conns: map[net.Conn]bool{}}
	d.URL = "git://" + d.Addr
	return d, d.Back()
}

// Hook has a whole connection if it returns true; nil: none does.
func (d *Daemon) Hook(hook func(conn net.Conn) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook = hook
}

// Heard is all that clients said since it was last told, but to a Hook.
func (d *Daemon) Heard() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.heard.String()
	d.heard.Reset()
	return was
}

// Away ends all connections, and takes no more.
func (d *Daemon) Away() {
	d.mu.Lock()
	if d.listener != nil {
		d.listener.Close()
		d.listener = nil
	}
	for c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.wait.Wait()
}

// Back serves at the same address again.
func (d *Daemon) Back() error {
	l, err := d.port.Listen() // it ends with Away
	if err == nil {
		d.listen(l)
	}
	return err
}

func (d *Daemon) listen(l net.Listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener = l
	d.wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.wait.Go(func() { d.serve(conn) })
		}
	})
}

func (d *Daemon) serve(conn net.Conn) {
	d.mu.Lock()
	away, hook := d.listener == nil, d.hook
	d.conns[conn] = true
	d.mu.Unlock()
	defer func() {
		conn.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.conns, conn)
	}()
	if away || hook != nil && hook(conn) {
		return
	}
	d.Run(conn, conn)
}

// Run runs the program for a connection; its answer goes to out. The program ends
// with the connection.
func (d *Daemon) Run(conn net.Conn, out io.Writer) {
	args := append([]string{"daemon", "--inetd", "--export-all", "--base-path=" + d.of.root}, d.more...)
	cmd := exec.Command(d.of.program, append(args, d.of.root)...) // it ends with its connection
	cmd.Env, cmd.Stdout = environment(d.of.root), out
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	go func() { // it may outlive the program, which need not read all
		_, _ = io.Copy(in, io.TeeReader(conn, hears{d}))
		in.Close()
	}()
	_ = cmd.Wait() // clients may go as they like
}

// hears keeps what a client says.
type hears struct{ d *Daemon }

func (h hears) Write(p []byte) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return h.d.heard.Write(p)
}

// Services are the lines by which clients asked for a service, of what was Heard.
func Services(heard string) (asked []string) {
	for _, part := range strings.SplitAfter(heard, "git-")[1:] {
		if line, _, ok := strings.Cut(part, "\x00"); ok && strings.Contains(line, "pack /") {
			asked = append(asked, "git-"+line)
		}
	}
	return asked
}
