package content

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

// checksum is a hash of a file's beginning that follows the arriving bytes, so that the
// last block of a large file need not wait for a hash of the whole.
type checksum struct {
	mu   sync.Mutex // held over the reads
	h    hash.Hash
	done int64
}

// feed hashes a file from the end of the last feed up to a point.
func (c *checksum) feed(ctx context.Context, fd int, to int64) error {
	buf := make([]byte, min(256<<10, max(to-c.done, 0)))
	for c.done < to {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := pread(fd, buf[:min(int64(len(buf)), to-c.done)], c.done)
		c.h.Write(buf[:n])
		c.done += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// advance hashes the present blocks from the beginning on, if that is of use. The file is pinned.
func (c *checksum) advance(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fd, to, h := f.prefix()
	if to <= c.done {
		return
	}
	if c.h == nil {
		c.h = h
	}
	if c.feed(f.s.work.ctx, fd, to) != nil {
		c.h, c.done = nil, 0
	}
}

// prefix is the size of the file's beginning that is present and will have to be hashed,
// with a descriptor and the hash.
func (f *File) prefix() (fd int, to int64, h hash.Hash) {
	l := f.lock()
	defer l.unlock()
	b := l.blocks
	if b == nil || b.touched || b.missing == 0 || l.closing {
		return -1, 0, nil
	}
	h, _ = providers.Hasher(b.digest)
	fd, err := l.reader()
	if h == nil || err != nil {
		return -1, 0, nil
	}
	return fd, b.start(b.firstMissing(0, len(b.state))), h
}

// verify compares the file, all of which has come, with its digest. A file that differs has
// no present block afterwards. It reads without the lock.
func (f *lockedFile) verify(fl *flight) error {
	b := f.blocks
	h, want := providers.Hasher(b.digest)
	if h == nil {
		return nil
	}
	fd, err := f.reader()
	if err != nil {
		return err
	}
	size := b.remote
	var got string
	f.unlocked(func() { got, err = f.file.sum.finish(f.s.work.ctx, fd, h, size) })
	switch {
	case b.touched || fl.dead:
		return nil // no state that a digest could be compared with
	case err != nil:
		return err
	case got == want:
		return nil
	}
	if err := b.reset(); err != nil {
		return err
	}
	return fmt.Errorf("%w: its hash is %s instead of %s", ErrCorrupt, got, want)
}

// finish is the hash of a file of a size, in hex.
func (c *checksum) finish(ctx context.Context, fd int, h hash.Hash, size int64) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.h == nil {
		c.h, c.done = h, 0
	}
	err := c.feed(ctx, fd, size)
	sum := hex.EncodeToString(c.h.Sum(nil))
	c.h, c.done = nil, 0
	return sum, err
}

// Verify compares a whole file with a digest as [Store.Sparse] takes it, for
// content that was kept and cannot be trusted unread. A difference is
// [ErrCorrupt], and so is a digest of a kind that cannot be compared; the file
// stays as it is.
func (f *File) Verify(ctx context.Context, digest string) error {
	if !f.Whole() {
		return ErrPartial
	}
	h, want := providers.Hasher(digest)
	if h == nil {
		return fmt.Errorf("%w: there is no hash to compare it with", ErrCorrupt)
	}
	got, err := hashOf(ctx, io.NewSectionReader(reading{ctx, f}, 0, f.Size()), h)
	if err == nil && got != want {
		err = fmt.Errorf("%w: its hash is %s instead of %s", ErrCorrupt, got, want)
	}
	return err
}

// hashBuffers are kept: every new small file is hashed soon after its last close,
// and to clear a new buffer takes longer than to hash 4 KiB.
var hashBuffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

func hashOf(ctx context.Context, r io.Reader, h hash.Hash) (string, error) {
	kept := hashBuffers.Get().(*[256 << 10]byte)
	defer hashBuffers.Put(kept)
	buf := kept[:]
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// reading is a file as an [io.ReaderAt].
type reading struct {
	ctx context.Context
	f   *File
}

func (r reading) ReadAt(p []byte, off int64) (int, error) { return r.f.ReadAt(r.ctx, p, off) }
