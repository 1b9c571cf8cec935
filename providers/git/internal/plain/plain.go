// Package plain asks a git daemon to run git's two services, over git://.
//
// It knows the line that such a connection begins with; package dialogue does the rest. Nothing
// on the way is encrypted, and neither side is authenticated: an answer may come from any host,
// and every client may push where a daemon allows one to. So this package takes no credentials
// and sends none. A daemon has no status and nothing beside its answer, so a refusal is known by
// its words alone, and as a rule those are the same for a missing repository and for a service
// that is off.
//
//	s := plain.New("git://git.acme.test/acme/ops.git", plain.Options{})
//	up, err := s.Upload(ctx)
//	defer up.Close()
//
// A session is a connection of its own: it ends with its context.
package plain

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// Options: the zero value reaches any server.
type Options struct {
	// Dial connects to an origin such as git://git.acme.test:9418; nil: a net.Dialer.
	Dial func(ctx context.Context, origin string) (net.Conn, error)
	// Patience is how long the server may take for the next piece of an answer; 0: a
	// minute.
	Patience time.Duration
}

// Server is one repository at a daemon. All methods may be used at once.
type Server struct {
	url string
	o   Options
}

// New is the repository at a URL of git. No request is sent yet.
func New(url string, o Options) *Server { return &Server{url, o} }

// Upload begins a session that fetches.
func (s *Server) Upload(ctx context.Context) (*dialogue.Upload, error) {
	one, err := s.start(ctx, transport.UploadPackServiceName)
	if err != nil {
		return nil, err
	}
	return &dialogue.Upload{Session: one}, nil
}

// Version2 begins a session that fetches, and asks for version 2 of the protocol; a
// daemon that does not know it speaks version 0.
func (s *Server) Version2(ctx context.Context) (*dialogue.Session, error) {
	return s.start(ctx, transport.UploadPackServiceName, "version=2")
}

// Receive begins one that pushes. A daemon that is not set up for it takes no pushes at all,
// which the first answer says: the error has the code providers.RefusedService.
func (s *Server) Receive(ctx context.Context) (*dialogue.Receive, error) {
	one, err := s.start(ctx, transport.ReceivePackServiceName)
	if err != nil {
		return nil, err
	}
	return &dialogue.Receive{Session: one}, nil
}

// start asks for a service, with extra parameters.
func (s *Server) start(ctx context.Context, service string, more ...string) (*dialogue.Session, error) {
	p, err := parse(s.url)
	if err != nil {
		return nil, err
	}
	conn, err := s.dial(ctx, p)
	if err != nil {
		return nil, err
	}
	l := dialogue.NewLine(ctx, conn, s.o.Patience)
	one := &dialogue.Session{Line: l, In: open{l}, Out: l, End: l, Why: refusedUpload}
	if service == transport.ReceivePackServiceName {
		one.Why = refusedReceive
	}
	ask := packp.GitProtoRequest{RequestCommand: service, Pathname: p.path, Host: p.host, ExtraParams: more}
	if err := ask.Encode(one); err != nil {
		err = one.Unheard(err)
		one.Close()
		return nil, err
	}
	return one, nil
}

func (s *Server) dial(ctx context.Context, p place) (net.Conn, error) {
	if s.o.Dial == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", p.addr)
	}
	return s.o.Dial(ctx, (&url.URL{Scheme: "git", Host: p.addr}).String())
}

// open is a connection that stays open after the last byte is sent: its other half brings the
// answer, and the service knows by itself where a question ends.
type open struct{ io.Writer }

func (open) Close() error { return nil }

// refusedUpload is the error of a fetch that broke off.
func refusedUpload(said string, err error) *dialogue.Error {
	if said == "" {
		return broken(err)
	}
	e := dialogue.Refused(said, "", err)
	if errors.Is(e.Kind, providers.ErrPermission) {
		e.Do = "correct storage.config of its manifest, or have the daemon export the repository: with --export-all, or a file git-daemon-export-ok in it"
	}
	return e
}

// refusedReceive is the error of a push that broke off.
func refusedReceive(said string, err error) *dialogue.Error {
	if said == "" {
		return broken(err)
	}
	e := dialogue.Refused(said, "", err)
	if errors.Is(e.Kind, providers.ErrPermission) {
		e.Code, e.Says = providers.RefusedService, "pushes are not taken (a daemon does with --enable=receive-pack); "+e.Says
	}
	return e
}

// broken is the error of a connection that ended without a message.
func broken(err error) *dialogue.Error {
	says := "the connection broke off: " + err.Error()
	if errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		says = "the server ended the connection, and did not say why"
	}
	return &dialogue.Error{Kind: providers.ErrUnavailable, Says: says, Err: err}
}

// A place is a parsed URL of git: host is as the URL has it.
type place struct{ host, addr, path string }

const usualPort = "9418"

// mostPath is more than the path of any repository.
const mostPath = 4096

var errURL = &dialogue.Error{Kind: providers.ErrInvalid, Says: "the repository's URL is not one of git, with host and path alone"}

// parse reads a URL. Its parts go into one line, in which NUL ends a part.
func parse(text string) (place, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "git" || u.Hostname() == "", u.User != nil, u.RawQuery != "" || u.ForceQuery || u.Fragment != "",
		len(u.Path) < 2 || len(u.Path) > mostPath, strings.ContainsAny(u.Path+u.Host, "\x00\r\n"):
		return place{}, errURL // without the URL, which may hold a secret
	}
	p := place{host: u.Host, path: u.Path}
	port := u.Port()
	if port == "" {
		port = usualPort
	}
	p.addr = net.JoinHostPort(u.Hostname(), port)
	return p, nil
}
