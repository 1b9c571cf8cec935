package upload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// A Payload is one state of an inode's content, on its way.
type Payload struct {
	Kind    providers.Kind
	Version uint64 // of the content: it is this, or newer
	Failed  error  // of reading it
	Kept    bool   // for more: Close does nothing

	target  string            // of a symbolic link
	oi      *files.OpenInode  // else
	snap    *content.Snapshot // of it
	digest  string            // when it may have to be recognised
	base    *table.Remote     // the state of the same content that the name has at the remote; nil: none
	release func(oi *files.OpenInode)
}

// NewPayload is a payload of a version of content that is open, until Close. It has no bytes
// before Take.
func NewPayload(oi *files.OpenInode, version uint64, release func(oi *files.OpenInode)) *Payload {
	return &Payload{Kind: providers.KindFile, Version: version, oi: oi, release: release}
}

// Take takes a consistent state of the content.
func (p *Payload) Take(ctx context.Context) (err error) {
	p.snap, err = p.oi.Content().Snapshot(ctx)
	return err
}

// Pack takes a consistent state of an inode's content. ErrAgain says that the name it was packed
// for is to be planned anew, ErrMoot that no name leads to the inode any more.
func (x *Executor) Pack(ctx context.Context, ino table.Ino) (*Payload, error) {
	p := &Payload{Kind: providers.KindFile, release: x.o.Content.Release}
	err := x.o.Tree.View(func(v *tree.View) error {
		n := v.Inode(ino)
		switch {
		case n == nil:
			return ErrMoot
		case n.Suspect:
			return ErrSuspect
		case n.IsSymlink():
			p.Kind, p.target = providers.KindSymlink, n.Target
		}
		p.Version = n.ContentVersion // the content that is read is this, or newer
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.Kind == providers.KindSymlink && p.target == "" {
		if err := x.o.Names.FetchTarget(ctx, ino); err != nil {
			return nil, err
		}
		return nil, ErrAgain
	}
	if p.Kind == providers.KindFile {
		if p.oi, err = x.o.Content.Open(ino); err != nil {
			return nil, err
		}
		if err = p.Take(ctx); err != nil {
			p.Close()
			return nil, err
		}
	}
	if !x.caps.OperationIDs {
		if p.digest, err = p.hash(ctx); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// Close lets go of the content, if it is not kept for more.
func (p *Payload) Close() {
	if p.Kept {
		return
	}
	if p.snap != nil {
		p.snap.Close()
	}
	if p.oi != nil {
		p.release(p.oi)
	}
}

func (p *Payload) hash(ctx context.Context) (string, error) {
	if p.snap != nil {
		return p.snap.Digest(ctx)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(p.target))), nil
}

// Size is the size of the content in bytes.
func (p *Payload) Size() int64 { return p.snap.Size() }

// Reader reads the content.
func (p *Payload) Reader() io.ReadSeeker { return p.snap.Reader() }

// Body is the content as a provider takes it. sent is told how many bytes of it have been read.
func (p *Payload) Body(sent func(n int)) providers.Body {
	if p.snap == nil {
		return providers.String(p.target)
	}
	return providers.Body{Reader: &counted{r: p.snap.Reader(), p: p, sent: sent}, Size: p.snap.Size()}
}

// counted is a reader that reports progress and keeps the error. A provider that hashes content
// before it sends it can read it again.
type counted struct {
	r    io.ReadSeeker
	p    *Payload
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
		c.p.Failed = err
	}
	return n, err
}
