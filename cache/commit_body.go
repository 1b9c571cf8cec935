package cache

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// body is content of a set.
type body struct {
	*commit.Planned
	parcel *upload.Payload
}

// open makes the bodies. Of files that a program has open a consistent state is
// taken at once, of others when it is read: not all can be open. Content that a program
// still reads and of which the set removes the last remote copy is fetched first.
func (s *set) open(ctx context.Context) error {
	if err := s.hydrateRemoved(ctx); err != nil {
		return err
	}
	s.bodies = make([]*body, len(s.Bodies))
	for i, p := range s.Bodies {
		if p != nil {
			s.bodies[i] = &body{Planned: p}
		}
	}
	for i, p := range s.bodies {
		if p == nil {
			continue
		}
		var err error
		if s.Changes[i].Body, err = s.body(ctx, p); err != nil {
			return &bodyError{p.Link, err}
		}
	}
	return nil
}

// pack has the payload be the content that the name had at the moment of the set.
func (p *body) pack(ctx context.Context, c *setCommitter) (err error) {
	p.parcel, err = c.v.kept.Pack(ctx, p.Planned, c.v.engine.exec.Pack)
	return err
}

// bodyError says whose content could not be read.
type bodyError struct {
	link table.Link
	err  error
}

func (e *bodyError) Error() string { return e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

func (s *set) body(ctx context.Context, p *body) (providers.Body, error) {
	v := s.c.v
	locked := v.lock()
	isOpen := locked.open.IsOpen(locked.View, p.Ino)
	locked.unlock()
	if p.Kind == providers.KindFile && !isOpen {
		return providers.Body{Reader: s.searched(&lazy{s: s, ctx: ctx, p: p, size: p.Size}, p), Size: p.Size}, nil
	}
	if err := p.pack(ctx, s.c); err != nil {
		return providers.Body{}, err
	}
	b := p.parcel.Body(func(int) { s.c.v.engine.moving() })
	if v.o.Guard.IsTooLarge(b.Size) { // it has grown since the set was made
		return providers.Body{}, v.o.Guard.TooLarge(b.Size)
	}
	b.Reader = s.searched(b.Reader, p)
	return b, nil
}

func (s *set) closeBodies() {
	for _, p := range s.bodies {
		if p != nil && p.parcel != nil {
			p.parcel.Close()
			p.parcel = nil
		}
	}
}

// bodyError is why content could not be read, if that is what err says.
func (s *set) bodyError(err error) error {
	if !errors.Is(err, providers.ErrBody) {
		return err
	}
	for _, p := range s.bodies {
		if p != nil && p.parcel != nil && p.parcel.Failed != nil {
			return &bodyError{p.Link, p.parcel.Failed}
		}
	}
	return err
}

// lazy is content that is opened when it is first read, and closed at its end.
type lazy struct {
	s    *set
	ctx  context.Context
	p    *body
	size int64
	r    io.Reader
	left int64
}

func (l *lazy) Read(b []byte) (int, error) {
	if l.r == nil {
		if err := l.p.pack(l.ctx, l.s.c); err != nil {
			l.p.parcel = &upload.Payload{Failed: err}
			return 0, err
		}
		if l.p.parcel.Size() != l.size { // a program has begun to write it
			l.p.parcel.Failed = upload.ErrAgain
			return 0, upload.ErrAgain
		}
		l.r, l.left = l.p.parcel.Reader(), l.size
	}
	n, err := l.r.Read(b)
	l.s.c.v.engine.moving()
	if l.left -= int64(n); err != nil && err != io.EOF {
		l.p.parcel.Failed = err
	} else if l.left == 0 && err == io.EOF {
		l.p.parcel.Close()
		l.p.parcel = nil
		l.r = strings.NewReader("")
		l.s.c.v.doing.goesOn(doesSend, int(l.s.sent.Add(1)), len(l.s.bodies))
	}
	return n, err
}

// searched has content searched for the secrets that are known, as it goes by.
func (s *set) searched(r io.Reader, p *body) io.Reader {
	return s.c.v.o.Guard.Secrets.Search(r, p.Gen, func(f commit.Finding) {
		if p.parcel == nil {
			p.parcel = &upload.Payload{}
		}
		p.parcel.Failed = f.Err
		locked := s.c.v.lock()
		defer locked.unlock()
		s.c.found[p.Ino] = f
	})
}

// searchAll searches all content of a set, which was refused for a secret in one
// of its files: the next set is without the others that hold one, and is not
// refused for each of them in turn.
func (s *set) searchAll(ctx context.Context) {
	defer s.closeBodies()
	for _, p := range s.bodies {
		if p == nil {
			continue
		}
		body, err := s.body(ctx, p)
		if err == nil {
			_, err = io.Copy(io.Discard, body.Reader)
		}
		if err != nil && commit.RefusalOf(err) == nil {
			s.c.v.o.Log.Debug("content is not searched yet", "name", p.Link.Name, "err", err)
		}
	}
}
