// Package remote speaks with a git server over HTTP or SSH, or with a git daemon.
//
// It knows git's protocol (version 0, and of version 2 the question where HEAD leads), over HTTP
// through go-git's transport, over SSH through package shell and over git:// through package
// plain, and the kinds of package providers for its errors. Each operation is a session of its
// own with credentials that are revealed for it; over HTTP they are in the header of its requests
// and nowhere else, and over git:// there are none. A fetch may be redirected, if the transport
// allows the place, and without the credentials if that is another server; a push is not.
//
//	r, err := remote.New(url, options)
//	s, err := r.Ask(ctx)
//	defer s.Close()
//	err = s.Fetch(ctx, remote.Want{Commit: commit, Haves: haves}, store.Receive)
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/plain"
	"github.com/wsmount/wsmount/providers/git/internal/shell"
)

// ID names a commit.
type ID = plumbing.Hash

// Options: the zero value asks without credentials over a plain transport.
type Options struct {
	// Credentials reveals the fields token, or username and password, and those of
	// package shell; nil: none.
	Credentials func(ctx context.Context) (map[string]string, error)
	Transport   http.RoundTripper // nil: http.DefaultTransport
	SSH         shell.Options
	Git         plain.Options
	Now         func() time.Time // nil: time.Now
}

// Remote is a repository at a server. All methods may be used at once.
type Remote struct {
	over protocol
	can  atomic.Pointer[capability.List] // last told over HTTP; nil: a session must ask
}

// A protocol begins sessions. Its errors are those of Ask.
type protocol interface {
	upload(ctx context.Context) (transport.UploadPackSession, error)
	receive(ctx context.Context) (transport.ReceivePackSession, error)
	large(ctx context.Context, operation string) (lfs.Endpoint, error)
	// second begins one that fetches, in version 2 of the protocol; nil: the server has
	// none.
	second(ctx context.Context) (version2, error)
}

// New is the repository at an http or https URL without user or query, at one of ssh, or at one
// of git: credentials for git are an error. No request is sent yet.
func New(url string, o Options) (*Remote, error) {
	switch Scheme(url) {
	case "ssh":
		if o.Now == nil {
			o.Now = time.Now
		}
		return &Remote{over: overSSH{shell.New(url, o.Credentials, o.SSH), &told{now: o.Now, by: map[string]lfs.Endpoint{}}}}, nil
	case "git":
		if o.Credentials != nil {
			return nil, fmt.Errorf("credentials are never sent over git://, where anybody may read them: %w", providers.ErrInvalid)
		}
		return &Remote{over: overGit{plain.New(url, o.Git)}}, nil
	}
	return &Remote{over: newHTTP(url, o)}, nil
}

// Scheme is the scheme of a URL, in small letters.
func Scheme(url string) string {
	scheme, _, _ := strings.Cut(url, "://")
	return strings.ToLower(scheme)
}

// Session is one answer of the server with its branches. Fetch goes on from it.
type Session struct {
	up   transport.UploadPackSession
	can  *capability.List
	refs map[string]ID
}

// Ask asks for the branches: one request.
func (r *Remote) Ask(ctx context.Context) (*Session, error) {
	up, err := r.over.upload(ctx)
	if err != nil {
		return nil, err
	}
	refs, err := up.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		refs, err = packp.NewAdvRefs(), nil
	}
	if err != nil {
		up.Close()
		return nil, translate(ctx, err)
	}
	if _, asks := r.over.(*overHTTP); asks {
		r.can.Store(refs.Capabilities)
	}
	return &Session{up, refs.Capabilities, refs.References}, nil
}

// Close ends the session. It is called in any case.
func (s *Session) Close() { s.up.Close() }

const heads = "refs/heads/"

// Branch is the commit of a branch; ok is false when there is none.
func (s *Session) Branch(name string) (id ID, ok bool) {
	id, ok = s.refs[heads+name]
	return id, ok
}

// Empty reports whether there is no branch at all.
func (s *Session) Empty() bool { return len(s.refs) == 0 }

// Default is the branch that the server's HEAD names, "" when the server does not tell: HEAD
// names none, or one without a commit (Remote.Unborn).
func (s *Session) Default() string {
	for _, link := range s.can.Get(capability.SymRef) {
		if from, to, _ := strings.Cut(link, ":"); from == "HEAD" {
			if name, ok := strings.CutPrefix(to, heads); ok {
				return name
			}
		}
	}
	return ""
}

// Want is the commit to fetch.
type Want struct {
	Commit ID   // with all that is in its history
	Haves  []ID // and not in that of these
	// Blobless leaves blobs out, which Blobs brings. Only a server that Filters knows it.
	Blobless bool
}

// Fetch has the server send a commit, as a pack that receive reads. It is called once
// at most.
func (s *Session) Fetch(ctx context.Context, w Want, receive func(io.Reader) error) error {
	req := packp.NewUploadPackRequestFromCapabilities(s.can)
	req.Wants, req.Haves = []ID{w.Commit}, w.Haves
	if w.Blobless {
		req.Filter = packp.FilterBlobNone()
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return err
		}
	}
	return s.fetch(ctx, req, receive)
}

// fetch makes a request.
func (s *Session) fetch(ctx context.Context, req *packp.UploadPackRequest, receive func(io.Reader) error) error {
	if err := req.Capabilities.Set(capability.NoProgress); err != nil {
		return err
	}
	answer, err := s.up.UploadPack(ctx, req)
	if err != nil {
		return translate(ctx, err)
	}
	defer answer.Close()
	pack := io.Reader(answer)
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, answer)
	case req.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, answer)
	}
	from := &reading{r: pack}
	if err := receive(from); err != nil {
		if from.err != nil {
			return translate(ctx, from.err)
		}
		return err
	}
	return nil
}

// reading keeps the error of r, to tell it from one of the reader that parses.
type reading struct {
	r   io.Reader
	err error
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Pushing is a session that may change branches.
type Pushing struct {
	down transport.ReceivePackSession
	refs *packp.AdvRefs
}

// AskPush is Ask for a session that will push.
func (r *Remote) AskPush(ctx context.Context) (*Pushing, error) {
	down, err := r.over.receive(ctx)
	if err != nil {
		return nil, err
	}
	refs, err := down.AdvertisedReferencesContext(ctx)
	if err != nil {
		down.Close()
		return nil, translate(ctx, err)
	}
	return &Pushing{down, refs}, nil
}

// Close ends the session. It is called in any case.
func (p *Pushing) Close() { p.down.Close() }

// Branch is the commit of a branch; ok is false when there is none.
func (p *Pushing) Branch(name string) (id ID, ok bool) {
	id, ok = p.refs.References[heads+name]
	return id, ok
}

// Tips are all commits and tags that the server names.
func (p *Pushing) Tips() []ID {
	var all []ID
	for _, id := range p.refs.References {
		all = append(all, id)
	}
	return all
}

// Send moves a branch from where the session saw it, with a pack of the objects that the server
// lacks. A refusal is a *RefusedError, with the server's own words, which are for people. After
// any error the branch may have moved: ask.
func (p *Pushing) Send(ctx context.Context, branch string, to ID, pack io.ReadCloser) error {
	req := packp.NewReferenceUpdateRequestFromCapabilities(p.refs.Capabilities)
	said := &lastWords{}
	if p.refs.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return errors.Join(err, pack.Close())
		}
		req.Progress = said
	}
	from, _ := p.Branch(branch)
	req.Commands = []*packp.Command{{Name: plumbing.ReferenceName(heads + branch), Old: from, New: to}}
	req.Packfile = pack
	report, err := p.down.ReceivePack(ctx, req)
	switch {
	case report != nil && err != nil && ctx.Err() == nil:
		return &RefusedError{Reason: reason(report, err), Said: said.String()}
	case err != nil:
		return translate(ctx, err)
	case !accepted(report, req.Commands[0].Name):
		return &Error{Kind: providers.ErrUnavailable, Err: errors.New("the server did not say what became of the push")}
	}
	return nil
}

// accepted reports whether a report says of a branch that it has moved. A report without the
// branch does not count.
func accepted(report *packp.ReportStatus, name plumbing.ReferenceName) bool {
	return report != nil && slices.ContainsFunc(report.CommandStatuses, func(c *packp.CommandStatus) bool {
		return c.ReferenceName == name && c.Error() == nil
	})
}

func reason(report *packp.ReportStatus, err error) string {
	for _, c := range report.CommandStatuses {
		if c.Error() != nil {
			return c.Status
		}
	}
	return err.Error()
}

// RefusedError is the error of a push that the server did not accept.
type RefusedError struct {
	Reason string // the server's word for it: "pre-receive hook declined"
	Said   string // its other words
}

// Error is all that the server said.
func (e *RefusedError) Error() string {
	if e.Said == "" {
		return "the server refuses: " + e.Reason
	}
	return "the server refuses: " + e.Reason + ": " + e.Said
}

// lastWords keeps the end of a server's messages to people.
type lastWords struct{ b []byte }

const wordsMax = 1000

func (l *lastWords) Write(p []byte) (int, error) {
	l.b = append(l.b, p...)
	l.b = bytes.Clone(l.b[max(0, len(l.b)-wordsMax):])
	return len(p), nil
}

func (l *lastWords) String() string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(l.b), ""), func(r rune) bool { return r < ' ' || r == 0x7f }), "; ")
}
