package shell

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
)

// A session is one service that runs at the server.
type session struct {
	client *ssh.Client
	line   *line
	run    *ssh.Session
	in     io.WriteCloser
	out    io.Reader
	said   *words
	unlink func() bool
}

var (
	_ transport.UploadPackSession  = (*Upload)(nil)
	_ transport.ReceivePackSession = (*Receive)(nil)
)

// Upload is a session that fetches.
type Upload struct{ *session }

// Receive is a session that pushes.
type Receive struct{ *session }

// Upload begins one that fetches.
func (s *Server) Upload(ctx context.Context) (*Upload, error) {
	one, err := s.start(ctx, transport.UploadPackServiceName, "")
	return &Upload{one}, err
}

// Receive begins one that pushes.
func (s *Server) Receive(ctx context.Context) (*Receive, error) {
	one, err := s.start(ctx, transport.ReceivePackServiceName, "")
	return &Receive{one}, err
}

// start runs a service for the repository, with more words behind its path.
func (s *Server) start(ctx context.Context, service, more string) (*session, error) {
	p, err := parse(s.url)
	if err != nil {
		return nil, err
	}
	client, l, err := s.connect(ctx, p)
	if err != nil {
		return nil, err
	}
	one := &session{client: client, line: l, said: &words{}}
	one.unlink = context.AfterFunc(ctx, func() { l.Close() })
	if err := l.await(func() error { return one.open(service + " '" + p.path + "'" + more) }); err != nil {
		one.Close()
		return nil, err
	}
	return one, nil
}

func (s *session) open(command string) (err error) {
	if s.run, err = s.client.NewSession(); err != nil {
		return err
	}
	if s.in, err = s.run.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.run.StdoutPipe(); err != nil {
		return err
	}
	s.run.Stderr = s.said
	return s.run.Start(command)
}

// Close ends the session and its connection. It may be called again.
func (s *session) Close() error {
	if s == nil {
		return nil
	}
	s.unlink()
	s.client.Close()
	return nil
}

// Read reads the answer.
func (s *session) Read(b []byte) (n int, err error) {
	err = s.line.await(func() (err error) { n, err = s.out.Read(b); return err })
	return n, err
}

// Write writes the question. A server that reads nothing is silent as well.
func (s *session) Write(b []byte) (n int, err error) {
	err = s.line.await(func() (err error) { n, err = s.in.Write(b); return err })
	return n, err
}

// ended is why an answer broke off: what the service said when it ended tells
// more than that.
func (s *session) ended(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	code := ""
	var exit *ssh.ExitError
	if end := s.line.await(s.run.Wait); errors.As(end, &exit) {
		code = fmt.Sprintf("exit %d", exit.ExitStatus())
	}
	return refused(s.said.String(), code, err)
}

func (s *session) advertised() (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	switch err := refs.Decode(s); {
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, s.ended(err)
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// AdvertisedReferences implements transport.Session.
func (u *Upload) AdvertisedReferences() (*packp.AdvRefs, error) { return u.advertised() }

// AdvertisedReferencesContext implements transport.Session. The context is that of
// the session.
func (u *Upload) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	return u.advertised()
}

// UploadPack implements transport.UploadPackSession: what it answers with is read
// from the server as it comes.
func (u *Upload) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if req.IsEmpty() {
		return nil, transport.ErrEmptyUploadPackRequest
	}
	if err := u.ask(req); err != nil {
		return nil, u.ended(err)
	}
	answer := packp.NewUploadPackResponse(req)
	if err := answer.Decode(u.session); err != nil {
		return nil, u.ended(err)
	}
	return answer, nil
}

// ask says all at once and waits for no acknowledgement in between, as go-git does
// over HTTP.
func (u *Upload) ask(req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(u); err != nil {
		return err
	}
	if err := req.UploadHaves.Encode(u, false); err != nil {
		return err
	}
	return pktline.NewEncoder(u).EncodeString("done\n")
}

// AdvertisedReferences implements transport.Session.
func (r *Receive) AdvertisedReferences() (*packp.AdvRefs, error) { return r.advertised() }

// AdvertisedReferencesContext implements transport.Session. The context is that of
// the session.
func (r *Receive) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	return r.advertised()
}

// ReceivePack implements transport.ReceivePackSession. A server that stops reading
// may have said why.
func (r *Receive) ReceivePack(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	sent := req.Encode(r)
	if sent == nil {
		sent = r.in.Close()
	}
	report := packp.NewReportStatus()
	if err := report.Decode(r.report(req)); err != nil {
		return nil, r.ended(errors.Join(err, sent))
	}
	return report, report.Error()
}

// report is what the server says became of it, without what is for people.
func (r *Receive) report(req *packp.ReferenceUpdateRequest) io.Reader {
	if !req.Capabilities.Supports(capability.Sideband64k) {
		return r
	}
	d := sideband.NewDemuxer(sideband.Sideband64k, r)
	d.Progress = req.Progress
	return d
}
