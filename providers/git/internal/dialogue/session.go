// Package dialogue speaks the protocol of git's two services (version 0), where a service has a
// connection to itself.
//
// It knows pkt-lines, and the kinds of package providers for an answer that breaks off, and
// nothing of how the service was reached: that is package shell's business, or plain's. It
// promises that a server which says nothing is waited for only so long, and that a session ends
// with the context of its Line.
//
//	l := dialogue.NewLine(ctx, conn, 0)
//	up := &dialogue.Upload{Session: &dialogue.Session{Line: l, In: l, Out: l, End: l, Why: why}}
//	defer up.Close()
//	refs, err := up.AdvertisedReferences()
package dialogue

import (
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// A Session is one service that runs at the server. All fields are required.
type Session struct {
	Line *Line
	In   io.WriteCloser // the service's input, until it is closed
	Out  io.Reader      // its output
	End  io.Closer      // ends the service and its connection
	// Why makes the error of an answer that broke off with err; said is the server's message in
	// its place (ERR), "" if there is none.
	Why func(said string, err error) *Error
}

var (
	_ transport.UploadPackSession  = (*Upload)(nil)
	_ transport.ReceivePackSession = (*Receive)(nil)
)

// Upload is a session that fetches.
type Upload struct{ *Session }

// Receive is a session that pushes.
type Receive struct{ *Session }

// Close ends the session and its connection. It may be called again.
func (s *Session) Close() error {
	s.End.Close()
	return nil
}

// Read reads the answer.
func (s *Session) Read(b []byte) (n int, err error) {
	err = s.Line.Await(func() (err error) { n, err = s.Out.Read(b); return err })
	return n, err
}

// Write writes the question. A server that reads nothing is silent as well.
func (s *Session) Write(b []byte) (n int, err error) {
	err = s.Line.Await(func() (err error) { n, err = s.In.Write(b); return err })
	return n, err
}

// Ended is the error of an answer that broke off: a message of the service before that tells more
// than err.
func (s *Session) Ended(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	var line *pktline.ErrorLine
	if errors.As(err, &line) {
		return s.Why(line.Text, err)
	}
	return s.Why("", err)
}

// Unheard is the error of a question that could not be sent: a server that refuses need not read
// it, and its message may have come before the connection broke off with sent.
func (s *Session) Unheard(sent error) error {
	var line *pktline.ErrorLine
	said := pktline.NewScanner(s)
	if said.Scan(); errors.As(said.Err(), &line) {
		return s.Why(line.Text, sent)
	}
	return s.Ended(sent)
}

func (s *Session) advertised() (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	switch err := refs.Decode(s); {
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, s.Ended(err)
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

// UploadPack implements transport.UploadPackSession: the answer is read from the server as it
// comes.
func (u *Upload) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if req.IsEmpty() {
		return nil, transport.ErrEmptyUploadPackRequest
	}
	if err := u.ask(req); err != nil {
		return nil, u.Unheard(err)
	}
	answer := packp.NewUploadPackResponse(req)
	if err := answer.Decode(u.Session); err != nil {
		return nil, u.Ended(err)
	}
	return answer, nil
}

// ask sends the whole request and waits for no acknowledgement in between, as go-git does over
// HTTP.
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

// ReceivePack implements transport.ReceivePackSession. A server that stops reading may have sent
// the reason.
func (r *Receive) ReceivePack(_ context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	sent := req.Encode(r)
	if sent == nil {
		sent = r.In.Close()
	}
	report := packp.NewReportStatus()
	if err := report.Decode(r.report(req)); err != nil {
		return nil, r.Ended(errors.Join(err, sent))
	}
	return report, report.Error()
}

// report is the server's report of the push, without its messages for people.
func (r *Receive) report(req *packp.ReferenceUpdateRequest) io.Reader {
	if !req.Capabilities.Supports(capability.Sideband64k) {
		return r
	}
	d := sideband.NewDemuxer(sideband.Sideband64k, r)
	d.Progress = req.Progress
	return d
}
