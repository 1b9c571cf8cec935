package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// A session is one service that runs at the server.
type session struct {
	*dialogue.Session
	run  *ssh.Session
	said words
}

// words keeps the beginning of a server's messages beside the answer.
type words []byte

func (w *words) Write(p []byte) (int, error) {
	*w = append(*w, p[:min(len(p), dialogue.WordsMax-len(*w))]...)
	return len(p), nil
}

// Upload begins a session that fetches.
func (s *Server) Upload(ctx context.Context) (*dialogue.Upload, error) {
	one, err := s.start(ctx, transport.UploadPackServiceName, "")
	if err != nil {
		return nil, err
	}
	return &dialogue.Upload{Session: one.Session}, nil
}

// Version2 begins a session that fetches, and asks for version 2 of the protocol; a server that
// does not know it, or ignores the variable, speaks version 0.
func (s *Server) Version2(ctx context.Context) (*dialogue.Session, error) {
	one, err := s.start(ctx, transport.UploadPackServiceName, "", "version=2")
	if err != nil {
		return nil, err
	}
	return one.Session, nil
}

// Receive begins one that pushes.
func (s *Server) Receive(ctx context.Context) (*dialogue.Receive, error) {
	one, err := s.start(ctx, transport.ReceivePackServiceName, "")
	if err != nil {
		return nil, err
	}
	return &dialogue.Receive{Session: one.Session}, nil
}

// start runs a service for the repository, with more words behind its path, and with parameters
// of its protocol.
func (s *Server) start(ctx context.Context, service, more string, protocol ...string) (*session, error) {
	p, err := parse(s.url)
	if err != nil {
		return nil, err
	}
	client, l, err := s.connect(ctx, p)
	if err != nil {
		return nil, err
	}
	one := &session{}
	one.Session = &dialogue.Session{Line: l, End: client, Why: one.why}
	if err := l.Await(func() error { return one.open(client, service+" '"+p.path+"'"+more, protocol) }); err != nil {
		one.Close()
		return nil, err
	}
	return one, nil
}

func (s *session) open(client *ssh.Client, command string, protocol []string) (err error) {
	if s.run, err = client.NewSession(); err != nil {
		return err
	}
	for _, p := range protocol {
		_ = s.run.Setenv("GIT_PROTOCOL", p) // many servers ignore it
	}
	if s.In, err = s.run.StdinPipe(); err != nil {
		return err
	}
	if s.Out, err = s.run.StdoutPipe(); err != nil {
		return err
	}
	s.run.Stderr = &s.said
	return s.run.Start(command)
}

// why is the error of an answer that broke off: with the service's status, and its message in the
// answer's place or beside it.
func (s *session) why(said string, err error) *dialogue.Error {
	code := ""
	var exit *ssh.ExitError
	if end := s.Line.Await(s.run.Wait); errors.As(end, &exit) {
		code = fmt.Sprintf("exit %d", exit.ExitStatus())
	}
	if said == "" {
		said = string(s.said)
	}
	return dialogue.Refused(said, code, err)
}
