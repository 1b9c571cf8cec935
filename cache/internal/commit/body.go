package commit

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// BodyOptions are the dependencies for reading the content of sets.
type BodyOptions struct {
	Tree *tree.Tree
	// IsOpen reports whether content is open.
	IsOpen func(v *tree.View, ino table.Ino) bool
	// Pack takes a state of the content of a name in a set: the one at the moment of the set.
	// ErrAgain says that this state is gone.
	Pack  func(ctx context.Context, p *Planned) (*upload.Payload, error)
	Guard *Guard
	// Found is told of a secret. It is called without the lock.
	Found func(ino table.Ino, f Finding)
	// Moving is told that bytes are moving, and Progress how many bodies were read to their end,
	// of how many changes.
	Moving   func()
	Progress func(done, total int)
	Log      *slog.Logger
}

// Bodies are the content of a set while it is sent.
type Bodies struct {
	o    BodyOptions
	all  []*body      // of changes of the same index; nil: none
	sent atomic.Int64 // bodies that were read to their end
}

// body is content of a set.
type body struct {
	*Planned
	payload *upload.Payload
}

// BodyError names the link whose content could not be read.
type BodyError struct {
	Link table.Link
	Err  error
}

func (e *BodyError) Error() string { return e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }

// Open gives the changes of the set their bodies, until Close. For files that a program has open a
// consistent state is taken at once, for others when it is read: not all can be open. The error is
// a BodyError.
func (s *Set) Open(ctx context.Context, o BodyOptions) (*Bodies, error) {
	b := &Bodies{o: o, all: make([]*body, len(s.Bodies))}
	for i, p := range s.Bodies {
		if p != nil {
			b.all[i] = &body{Planned: p}
		}
	}
	for i, p := range b.all {
		if p == nil {
			continue
		}
		var err error
		if s.Changes[i].Body, err = b.open(ctx, p); err != nil {
			b.Close()
			return nil, &BodyError{p.Link, err}
		}
	}
	return b, nil
}

// open makes a body.
func (b *Bodies) open(ctx context.Context, p *body) (providers.Body, error) {
	v := b.o.Tree.Lock()
	isOpen := b.o.IsOpen(v, p.Ino)
	b.o.Tree.Unlock()
	if p.Kind == providers.KindFile && !isOpen {
		return providers.Body{Reader: b.searched(&lazy{b: b, ctx: ctx, p: p, size: p.Size}, p), Size: p.Size}, nil
	}
	if err := b.pack(ctx, p); err != nil {
		return providers.Body{}, err
	}
	body := p.payload.Body(func(int) { b.o.Moving() })
	if b.o.Guard.IsTooLarge(body.Size) { // it has grown since the set was made
		return providers.Body{}, b.o.Guard.TooLarge(body.Size)
	}
	body.Reader = b.searched(body.Reader, p)
	return body, nil
}

func (b *Bodies) pack(ctx context.Context, p *body) (err error) {
	p.payload, err = b.o.Pack(ctx, p.Planned)
	return err
}

// Close lets go of all content.
func (b *Bodies) Close() {
	for _, p := range b.all {
		if p != nil && p.payload != nil {
			p.payload.Close()
			p.payload = nil
		}
	}
}

// Cause is why content could not be read, as a BodyError, if err comes from that.
func (b *Bodies) Cause(err error) error {
	if !errors.Is(err, providers.ErrBody) {
		return err
	}
	for _, p := range b.all {
		if p != nil && p.payload != nil && p.payload.Failed != nil {
			return &BodyError{p.Link, p.payload.Failed}
		}
	}
	return err
}

// searched searches content for the known secrets, as it goes by.
func (b *Bodies) searched(r io.Reader, p *body) io.Reader {
	return b.o.Guard.Secrets.Search(r, p.Gen, func(f Finding) {
		if p.payload == nil {
			p.payload = &upload.Payload{}
		}
		p.payload.Failed = f.Err
		b.o.Found(p.Ino, f)
	})
}

// SearchAll searches all content of a set that was refused for a secret in one of its files: the
// next set then leaves out all files that hold one, and is not refused for each of them in turn.
func (b *Bodies) SearchAll(ctx context.Context) {
	defer b.Close()
	for _, p := range b.all {
		if p == nil {
			continue
		}
		body, err := b.open(ctx, p)
		if err == nil {
			_, err = io.Copy(io.Discard, body.Reader)
		}
		if err != nil && pending.RefusalOf(err) == nil {
			b.o.Log.Debug("content is not searched yet", "name", p.Link.Name, "err", err)
		}
	}
}

// lazy is content that is opened when it is first read, and closed at its end.
type lazy struct {
	b    *Bodies
	ctx  context.Context
	p    *body
	size int64
	r    io.Reader
	left int64
}

func (l *lazy) Read(data []byte) (int, error) {
	if l.r == nil {
		if err := l.b.pack(l.ctx, l.p); err != nil {
			l.p.payload = &upload.Payload{Failed: err}
			return 0, err
		}
		if l.p.payload.Size() != l.size { // a program has begun to write it
			l.p.payload.Failed = upload.ErrAgain
			return 0, upload.ErrAgain
		}
		l.r, l.left = l.p.payload.Reader(), l.size
	}
	n, err := l.r.Read(data)
	l.b.o.Moving()
	if l.left -= int64(n); err != nil && err != io.EOF {
		l.p.payload.Failed = err
	} else if l.left == 0 && err == io.EOF {
		l.p.payload.Close()
		l.p.payload = nil
		l.r = strings.NewReader("")
		l.b.o.Progress(int(l.b.sent.Add(1)), len(l.b.all))
	}
	return n, err
}
