package shell

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// connect makes a connection to the server, which has proved its identity, and taken a key of
// ours.
func (s *Server) connect(ctx context.Context, p place) (*ssh.Client, *dialogue.Line, error) {
	k, err := readKnown(p, s.o.KnownHosts)
	if err != nil {
		return nil, nil, err
	}
	key, err := s.key(ctx, &p)
	if err != nil {
		return nil, nil, err
	}
	conn, err := s.dial(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	l := dialogue.NewLine(ctx, conn, s.o.Patience)
	methods, done := s.auth(ctx, key)
	defer done()
	var c ssh.Conn
	var channels <-chan ssh.NewChannel
	var requests <-chan *ssh.Request
	err = l.Await(func() (err error) {
		c, channels, requests, err = ssh.NewClientConn(l, p.addr(), &ssh.ClientConfig{
			User: p.login, Auth: methods, HostKeyCallback: k.believe, HostKeyAlgorithms: k.algorithms})
		return err
	})
	if err != nil {
		l.Close()
		return nil, nil, s.failed(k, key != nil, err)
	}
	return ssh.NewClient(c, channels, requests), l, nil
}

func (s *Server) dial(ctx context.Context, p place) (net.Conn, error) {
	if s.o.Dial == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", p.addr())
	}
	return s.o.Dial(ctx, (&url.URL{Scheme: "ssh", Host: p.addr()}).String())
}

// auth are the methods to authenticate the client: with the credentials' key, else with those of
// the agent, until done is called.
func (s *Server) auth(ctx context.Context, key ssh.Signer) (methods []ssh.AuthMethod, done func()) {
	done = func() {}
	switch {
	case key != nil:
		return []ssh.AuthMethod{ssh.PublicKeys(key)}, done
	case s.o.Agent == "":
		return nil, done
	}
	var conn net.Conn
	ask := func() (_ []ssh.Signer, err error) {
		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", s.o.Agent); err != nil {
			return nil, errAgent
		}
		if err := conn.SetDeadline(time.Now().Add(s.o.Patience)); err != nil {
			return nil, err
		}
		return agent.NewClient(conn).Signers()
	}
	return []ssh.AuthMethod{ssh.PublicKeysCallback(ask)}, func() {
		if conn != nil {
			conn.Close()
		}
	}
}

var errAgent = errors.New("unable to authenticate: the ssh-agent does not answer")

// failed is the error for a connection that could not be made.
func (s *Server) failed(k *known, haveKey bool, err error) error {
	switch {
	case k.refused != nil:
		return k.refused
	case !unproved(err):
		return err
	}
	e := &dialogue.Error{Kind: providers.ErrUnauthenticated, Code: "auth", Err: err}
	switch {
	case haveKey:
		e.Says = "the server does not take the key that ssh_private_key is, for the login " + k.place.login
	case errors.Is(err, errAgent):
		e.Says = "the ssh-agent at " + s.o.Agent + " does not answer"
	case s.o.Agent != "":
		e.Says = "the server takes no key that the ssh-agent has, for the login " + k.place.login
	default:
		e.Says = "the server wants a key, and there is none"
		e.Do = "name a secret with the field ssh_private_key in auth.state.env of its manifest, or write providers.github.ssh.credentials in the host configuration"
	}
	return e
}

// unproved reports whether the server did not take our keys. The SSH library has no type for it.
func unproved(err error) bool {
	for _, words := range []string{"unable to authenticate", "authentication failures"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}
