package cache

import (
	"crypto/md5" // some backends tell no other digest
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// unchanged reports whether content that was clean when it was opened for
// writing still is what the backend has.
func (r *recovery) unchanged(ino table.Ino, f *content.File, left *int64) bool {
	v := r.v
	locked := v.lock()
	var n table.Inode
	digest := ""
	if p := locked.table.Inode(ino); p != nil {
		n, digest = *p, locked.digestOf(p)
	}
	locked.unlock()
	if digest == "" || !f.Whole() || f.Size() != n.Size || f.Size() > *left {
		return false
	}
	*left -= f.Size()
	ok, known := matches(f, digest)
	return ok && known
}

// digestOf is what the backend says of an inode's content, "" unless it says the same
// under each name that has its state: content that was written on its way there may be
// newer than that under one, and not under another.
func (v *View) digestOf(n *table.Inode) (digest string) {
	for i, l := range n.RemoteLinks {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if b := rec.Remote; b == nil || b.ContentVersion != n.ContentVersion || b.Digest == "" || i > 0 && b.Digest != digest {
			return ""
		}
		digest = rec.Remote.Digest
	}
	return digest
}

// matches compares content with a digest; known is false when the digest is of
// a kind that cannot be computed here.
func matches(f *content.File, digest string) (ok, known bool) {
	kind, want, _ := strings.Cut(digest, ":")
	var h hash.Hash
	switch kind {
	case "sha256":
		h = sha256.New()
	case "md5":
		h = md5.New() // see above
	default:
		return false, false
	}
	fd := f.Fd()
	if fd < 0 {
		return false, true
	}
	if _, err := io.Copy(h, io.NewSectionReader(fdReader(fd), 0, f.Size())); err != nil {
		return false, true
	}
	return hex.EncodeToString(h.Sum(nil)) == want, true
}

// fdReader reads a descriptor that belongs to somebody else.
type fdReader int

func (fd fdReader) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(int(fd), p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, err
		case m == 0:
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}
