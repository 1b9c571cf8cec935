// Package shell runs the two services of git at a server over SSH.
//
// It knows the connection (golang.org/x/crypto/ssh), and how both sides prove their identity;
// package dialogue does the rest. It promises that a server is spoken with only after its key was
// found in the files of known hosts, that nothing of the user's is used that Options does not
// name (no ~/.ssh/config, agent, key file or proxy), that no local program is run, and that a
// server which says nothing is waited for only so long.
//
//	s := shell.New("ssh://git@git.acme.test/acme/ops.git", reveal, shell.Options{KnownHosts: files})
//	up, err := s.Upload(ctx)
//	defer up.Close()
//
// A session is a connection of its own: it ends with its context.
package shell

import (
	"context"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// Options: the zero value believes no server, so that no request is possible.
type Options struct {
	// KnownHosts are files of known hosts; missing ones are ignored.
	KnownHosts []string
	// Agent is the socket of the ssh-agent that has the keys, where the credentials
	// have none; "": there is none.
	Agent string
	// Dial connects to an origin such as ssh://git.acme.test:22; nil: a net.Dialer.
	Dial func(ctx context.Context, origin string) (net.Conn, error)
	// Patience is how long the server may take for the next piece of an answer; 0: a
	// minute.
	Patience time.Duration
}

// Server is one repository at a server. All methods may be used at once.
type Server struct {
	url         string
	credentials func(context.Context) (map[string]string, error)
	o           Options
	ring        ring
}

// New is the repository at a URL of ssh. credentials reveals ssh_private_key, or a key as the
// only field, ssh_passphrase if the key has one, and username, the login where the URL names
// none; nil: there are none. No request is sent yet.
func New(url string, credentials func(context.Context) (map[string]string, error), o Options) *Server {
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	return &Server{url: url, credentials: credentials, o: o}
}

var errURL = &dialogue.Error{Kind: providers.ErrInvalid, Says: "the repository's URL is not one of ssh"}

// A place is a parsed URL of ssh.
type place struct{ login, host, port, path string }

func (p place) addr() string { return net.JoinHostPort(p.host, p.port) }

// usualLogin is the login of all servers that hold nothing but repositories.
const usualLogin = "git"

// parse reads a URL. As git has it, a path that begins with /~/ begins in the
// login's home.
func parse(text string) (place, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "ssh" || u.Hostname() == "" || strings.ContainsAny(u.Path, "'!\n\x00") {
		return place{}, errURL // without the URL, which may hold a secret
	}
	p := place{login: u.User.Username(), host: u.Hostname(), port: u.Port(), path: u.Path}
	if p.port == "" {
		p.port = "22"
	}
	p.path = strings.TrimPrefix(p.path, "/~/")
	if strings.HasPrefix(p.path, "-") { // it would be an option of the service
		return place{}, errURL
	}
	return p, nil
}
