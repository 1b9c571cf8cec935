package past

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// source is where the content of a version is.
type source struct {
	kind contentKind
	id   uint64    // in the store's history; of local content, its record
	ino  table.Ino // that still has the content
	gen  uint64
	size int64
	sum  string // SHA-256 of kept content, in hex; "": it is not known

	revision providers.Revision // that has the content, at a path
	at       providers.Locator
	version  string // that the path must have; "": any
}

type contentKind uint8

// The places of content.
const (
	contentGone  contentKind = iota
	contentKept              // in the store's history
	contentHere              // the working copy still has it
	contentAway              // the remote has it, under the present inode
	contentEmpty             // it is empty
	contentPast              // a revision of the remote has it, or the remote may keep it as a version
)

// contentOf finds the place of a record's content.
func contentOf(v *tree.View, id uint64, r *history.Record) source {
	switch {
	case r.Kept:
		return source{kind: contentKept, id: r.KeptID(id), ino: r.Ino, size: r.Size, sum: r.SHA}
	case r.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return source{}
	case r.Size == 0:
		return source{kind: contentEmpty}
	}
	n := v.Inode(r.Ino)
	if n != nil && n.ContentVersion == r.Gen && n.State == table.Whole && !n.Writing {
		return source{kind: contentHere, id: id, ino: r.Ino, gen: r.Gen, size: n.Size}
	}
	if of := history.Get(v, r.Of); of != nil && of.Gen == r.Gen {
		return contentOf(v, r.Of, of)
	}
	return pastSource(r.Past, r.Size)
}

// Content opens the content of a version. It fails with ErrNoVersion and
// history.ErrNotKept. The caller closes it.
func (h *Past) Content(id string) (r io.ReadCloser, size int64, err error) {
	src, err := h.sourceOf(id)
	if err != nil {
		return nil, 0, err
	}
	return h.open(src)
}

// sourceOf is the place of the content of a version.
func (h *Past) sourceOf(id string) (src source, err error) {
	number, ok := parseID(id)
	err = h.o.Tree.View(func(v *tree.View) error {
		r := history.Get(v, number)
		if !ok || r == nil {
			return fmt.Errorf("%q: %w", id, ErrNoVersion)
		}
		src = contentOf(v, number, r)
		if src.kind == contentGone {
			return fmt.Errorf("%s of %s: %w", id, r.Path, history.ErrNotKept)
		}
		return nil
	})
	return src, err
}

func (h *Past) open(src source) (io.ReadCloser, int64, error) {
	switch src.kind {
	case contentEmpty:
		return io.NopCloser(strings.NewReader("")), 0, nil
	case contentHere:
		r, size, err := h.openHere(src)
		if err == nil {
			return r, size, nil
		}
		now, moved := h.movedOn(src)
		if !moved {
			return nil, 0, err
		}
		return h.open(now)
	case contentAway:
		return h.openAway(src)
	case contentPast:
		return h.openPast(src)
	case contentGone:
		return nil, 0, history.ErrNotKept
	}
	return h.openKept(src)
}

// openKept opens content in the store's history. That it is not what was kept, as a loss of power
// or a fault of the disk can leave it, is history.ErrNotKept: of the reader, if the size is right.
func (h *Past) openKept(src source) (io.ReadCloser, int64, error) {
	f, err := h.o.Keeper.OpenKept(src.ino, src.id)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && st.Size() != src.size {
		err = fmt.Errorf("%w whole: the disk has %d bytes instead of %d", history.ErrNotKept, st.Size(), src.size)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	if src.sum == "" {
		return f, src.size, nil
	}
	return &summedFile{f, src.size, sha256.New(), src.sum}, src.size, nil
}

// summedFile fails with its last byte when what was read is not what its sum says.
// It is read from its beginning only.
type summedFile struct {
	f    *os.File
	left int64
	h    hash.Hash
	want string
}

func (f *summedFile) Read(p []byte) (int, error) {
	n, err := f.f.Read(p)
	f.h.Write(p[:n])
	f.left -= int64(n)
	if n > 0 && f.left <= 0 && hex.EncodeToString(f.h.Sum(nil)) != f.want {
		err = fmt.Errorf("%w whole: the disk has other bytes", history.ErrNotKept)
	}
	return n, err
}

func (f *summedFile) Close() error { return f.f.Close() }

// movedOn is the new place of content that the working copy had, if it does not have it any more:
// its file was removed or changed meanwhile, and the history took the content, or it is lost.
func (h *Past) movedOn(src source) (now source, moved bool) {
	v := h.o.Tree.Lock()
	defer h.o.Tree.Unlock()
	if r := history.Get(v, src.id); r != nil {
		now = contentOf(v, src.id, r)
	}
	return now, now.kind != contentHere
}

// openHere opens content that the working copy still has, in its present state.
func (h *Past) openHere(src source) (io.ReadCloser, int64, error) {
	f, err := h.o.Store.Open(src.ino)
	if err != nil {
		return nil, 0, err
	}
	snap, err := f.Snapshot(h.o.Context)
	if err != nil {
		f.Release()
		return nil, 0, err
	}
	if !h.o.Keeper.IsQuietly(src.ino, src.gen) {
		snap.Close()
		f.Release()
		return nil, 0, history.ErrNotKept // it changed just now
	}
	return &snapshotReader{snap.Reader(), snap, f}, snap.Size(), nil
}

// openAway opens content that is not all local, from the remote.
func (h *Past) openAway(src source) (io.ReadCloser, int64, error) {
	r, size, err := h.o.Volume.Open(h.o.Context, src.ino)
	if err == nil && !h.o.Keeper.IsQuietly(src.ino, src.gen) {
		r.Close()
		return nil, 0, history.ErrNotKept
	}
	return r, size, err
}

// snapshotReader reads content as it was when it was opened.
type snapshotReader struct {
	*io.SectionReader
	snap *content.Snapshot
	f    *content.File
}

func (r *snapshotReader) Close() error {
	r.snap.Close()
	r.f.Release()
	return nil
}

// pastSource is the content at a place of the past, of so many bytes.
func pastSource(p *history.Past, size int64) source {
	if p == nil {
		return source{}
	}
	at, err := providers.ParseLocator(p.Path)
	switch size = cmp.Or(p.Size, size); {
	case err != nil:
		return source{}
	case size == 0:
		return source{kind: contentEmpty}
	}
	return source{kind: contentPast, revision: p.Revision, at: at, size: size, version: p.Version}
}

// notKept says that a revision which the history remembers, or its content, has gone from the
// store, or that the store does not let that be known.
func (s *source) notKept(err error) error {
	switch {
	case s.version == "":
		return err
	case isNotThere(err), errors.Is(err, providers.ErrConflict), errors.Is(err, providers.ErrIsDir):
		return history.ErrNotKept
	case errors.Is(err, providers.ErrPermission), errors.Is(err, providers.ErrUnsupported):
		return fmt.Errorf("%w here, and the store's past cannot be asked: %w", history.ErrNotKept, err)
	}
	return err
}

// openPast opens content of a revision, or that a store without revisions may keep.
func (h *Past) openPast(src source) (io.ReadCloser, int64, error) {
	if src.revision == "" {
		body, err := providers.Stream(h.o.Context, h.o.Remote, src.at, providers.ReadOptions{Version: providers.Version{ETag: src.version, Size: src.size}, Past: true})
		return body.Body, body.Info.Size, src.notKept(err)
	}
	at, err := h.treeAt(h.o.Context, src.revision)
	if err != nil {
		return nil, 0, src.notKept(err)
	}
	body, err := providers.Stream(h.o.Context, at, src.at, providers.ReadOptions{})
	if err != nil {
		return nil, 0, errors.Join(src.notKept(err), at.Close())
	}
	if src.version != "" && src.version != history.VersionText(body.Info.Version) {
		return nil, 0, errors.Join(history.ErrNotKept, body.Body.Close(), at.Close())
	}
	return &Body{body.Body, at}, body.Info.Size, nil
}

// Body is content of a revision, which is closed with it.
type Body struct {
	io.ReadCloser
	Revision providers.Provider
}

// Close closes both.
func (b *Body) Close() error { return errors.Join(b.ReadCloser.Close(), b.Revision.Close()) }

// isNotThere reports whether the remote has nothing at a place.
func isNotThere(err error) bool {
	return errors.Is(err, providers.ErrNotExist) || errors.Is(err, providers.ErrNotDir)
}
