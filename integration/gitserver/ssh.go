package gitserver

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/wsmount/wsmount/integration/internal/port"
)

// SSH serves the repositories of a Server over SSH: it runs `git upload-pack` and
// `git receive-pack` for who has a key that it admits, and nothing else.
type SSH struct {
	Addr string // host:port
	URL  string // without a slash at its end

	of   *Server
	port *port.Held
	wait sync.WaitGroup

	mu       sync.Mutex // guards what follows
	hosts    []ssh.Signer
	admitted map[string]bool // public keys
	listener net.Listener    // nil: it is away
	conns    map[net.Conn]bool
	commands []string
	hook     func(command string, c Channel) bool
}

// A Channel is the dialogue with a client.
type Channel = ssh.Channel

// LaunchSSH serves at a port of its own, with a key of the server's.
func (s *Server) LaunchSSH(host Key) (*SSH, error) {
	held, err := port.Hold()
	if err != nil {
		return nil, err
	}
	h := &SSH{Addr: held.Addr, port: held, of: s, hosts: []ssh.Signer{host.signer}, admitted: map[string]bool{}, conns: map[net.Conn]bool{}}
	h.URL = "ssh://git@" + h.Addr
	return h, h.Back()
}

// Admit takes a client's key from now on.
func (h *SSH) Admit(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admitted[string(k.Public.Marshal())] = true
}

// Rekey gives the server another key.
func (h *SSH) Rekey(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hosts = []ssh.Signer{k.signer}
}

// AlsoHas gives the server one more key, of another kind.
func (h *SSH) AlsoHas(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hosts = append(h.hosts, k.signer)
}

// Hook sees each command first, and has the whole dialogue if it returns true; nil:
// none does.
func (h *SSH) Hook(hook func(command string, c Channel) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

// Commands are what was asked to run since it was last told.
func (h *SSH) Commands() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.commands
	h.commands = nil
	return was
}

// Away ends all connections, and takes no more.
func (h *SSH) Away() {
	h.mu.Lock()
	if h.listener != nil {
		h.listener.Close()
		h.listener = nil
	}
	for c := range h.conns {
		c.Close()
	}
	h.mu.Unlock()
	h.wait.Wait()
}

// Back serves at the same address again.
func (h *SSH) Back() error {
	l, err := h.port.Listen() // it ends with Away
	if err == nil {
		h.listen(l)
	}
	return err
}

func (h *SSH) listen(l net.Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listener = l
	h.wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			h.wait.Go(func() { h.serve(conn) })
		}
	})
}

func (h *SSH) config() *ssh.ServerConfig {
	c := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.admitted[string(key.Marshal())] {
			return nil, fmt.Errorf("nobody's key")
		}
		return nil, nil
	}}
	for _, k := range h.hosts {
		c.AddHostKey(k)
	}
	return c
}

func (h *SSH) serve(conn net.Conn) {
	h.mu.Lock()
	away, config := h.listener == nil, h.config()
	h.conns[conn] = true
	h.mu.Unlock()
	defer func() {
		conn.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.conns, conn)
	}()
	if away {
		return
	}
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		h.wait.Go(func() { h.session(channel, requests) })
	}
}

// session runs one command, with the version of the protocol that was asked for.
func (h *SSH) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	var env []string
	for r := range requests {
		var pair struct{ Name, Value string }
		var command struct{ Text string }
		switch {
		case r.Type == "env" && ssh.Unmarshal(r.Payload, &pair) == nil && pair.Name == "GIT_PROTOCOL":
			env = append(env, "GIT_PROTOCOL="+pair.Value)
			_ = r.Reply(true, nil)
		case r.Type == "exec" && ssh.Unmarshal(r.Payload, &command) == nil:
			_ = r.Reply(true, nil)
			status := h.command(command.Text, env, channel)
			// Who is gone needs no answer.
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func (h *SSH) command(text string, env []string, channel ssh.Channel) (status uint32) {
	h.mu.Lock()
	h.commands = append(h.commands, text)
	hook := h.hook
	h.mu.Unlock()
	if hook != nil && hook(text, channel) {
		return 1
	}
	return h.Run(text, env, channel, channel)
}

// Run runs a command, whose answer goes to out.
func (h *SSH) Run(text string, env []string, channel Channel, out io.Writer) (status uint32) {
	if asked, ok := strings.CutPrefix(text, "git-lfs-authenticate "); ok && h.of.offersLFS() {
		return h.of.authenticate(asked, out)
	}
	service, path, _ := strings.Cut(text, " ")
	service, isGit := strings.CutPrefix(service, "git-")
	path = strings.TrimSuffix(strings.TrimPrefix(path, "'"), "'")
	if !isGit || service != "upload-pack" && service != "receive-pack" || strings.Contains(path, "..") || strings.Contains(path, "'") {
		fmt.Fprintln(channel.Stderr(), "this is for git alone")
		return 128
	}
	cmd := exec.Command(h.of.program, service, filepath.Join(h.of.root, path)) // it ends with its connection
	cmd.Env = append(environment(h.of.root), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	cmd.Stdout, cmd.Stderr = out, channel.Stderr()
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() { // it may outlive the command, which need not read all
		_, _ = io.Copy(in, channel)
		in.Close()
	}()
	if cmd.Wait() != nil {
		return uint32(cmd.ProcessState.ExitCode())
	}
	return 0
}
