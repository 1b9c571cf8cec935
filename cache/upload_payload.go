package cache

import (
	"context"
	"errors"
	"io"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// payload is content on its way.
type payload struct {
	kind   providers.Kind
	gen    uint64
	target string            // of a symbolic link
	oi     *files.OpenInode  // else
	snap   *content.Snapshot // of it
	digest string            // when it may have to be recognised
	base   *table.Remote     // the state of the same content that the name has at the backend; nil: none
	failed error             // of reading it
	kept   bool              // it is Volume.kept's
}

var errSuspect = errors.New("a loss of power may have cost it bytes: see wsmount recover")

// pack takes a consistent state of an inode's content.
func (e *executor) pack(ctx context.Context, s *operation) (*payload, error) {
	v := e.v
	p := &payload{kind: providers.KindFile}
	err := v.view(func(v *View) error {
		n := v.table.Inode(s.Ino)
		switch {
		case n == nil:
			return errMoot
		case n.Suspect:
			return errSuspect
		case n.IsSymlink():
			p.kind, p.target = providers.KindSymlink, n.Target
		}
		p.gen = n.ContentVersion // the content that is read is this, or newer
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.kind == providers.KindSymlink && p.target == "" {
		if err := v.fetchTarget(ctx, s.Ino); err != nil {
			return nil, err
		}
		return nil, errAgain
	}
	if p.kind == providers.KindFile {
		if p.oi, err = v.acquire(s.Ino); err != nil {
			if errors.Is(err, fs.ErrStale) && v.gone(s.Ino) {
				err = errMoot // it was removed just now
			}
			return nil, err
		}
		if p.snap, err = p.oi.Content().Snapshot(ctx); err != nil {
			p.close(v)
			return nil, err
		}
	}
	if !v.caps.OperationIDs {
		if p.digest, err = p.hash(ctx); err != nil {
			p.close(v)
			return nil, err
		}
	}
	return p, nil
}

// gone reports whether nothing leads to an inode here any more: then its content
// may be gone too.
func (v *Volume) gone(ino table.Ino) bool {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	return (n == nil || len(n.Links) == 0) && locked.table.Err() == nil
}

// close lets go of the content, if it is not kept for more.
func (p *payload) close(v *Volume) {
	if p.kept {
		return
	}
	if p.snap != nil {
		p.snap.Close()
	}
	if p.oi != nil {
		v.opener.Release(p.oi)
	}
}

func (p *payload) hash(ctx context.Context) (string, error) {
	if p.snap != nil {
		return p.snap.Digest(ctx)
	}
	return digestOf(p.target), nil
}

// body is the content as a provider takes it. sent is told how much of it has
// been read.
func (p *payload) body(sent func(n int)) providers.Body {
	if p.snap == nil {
		return providers.String(p.target)
	}
	return providers.Body{Reader: &counted{r: p.snap.Reader(), p: p, sent: sent}, Size: p.snap.Size()}
}

// counted is a reader that tells of progress and keeps the error. It can be read
// again, by who hashes content before it goes out.
type counted struct {
	r    io.ReadSeeker
	p    *payload
	sent func(n int)
	read int
}

// Seek implements io.Seeker.
func (c *counted) Seek(off int64, whence int) (int64, error) {
	if off != 0 || whence != io.SeekCurrent {
		c.sent(-c.read)
		c.read = 0
	}
	return c.r.Seek(off, whence)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.sent(n)
	c.read += n
	if err != nil && err != io.EOF {
		c.p.failed = err
	}
	return n, err
}
