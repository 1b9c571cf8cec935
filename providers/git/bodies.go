package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// bodies takes the content of a set into a batch, before the head is held. Content that goes
// through LFS is kept as an object, and the batch gets its pointer: the filters of the tree after
// the set decide.
type bodies struct {
	repo    *repository
	ctx     context.Context
	batch   *odb.Batch
	changes []providers.Change
	blobs   []blob
	made    map[id][]byte // pointers and files of attributes

	root    id   // of the tree before
	over    *run // that tree
	places  map[providers.Locator]int
	filters map[providers.Locator]*attributes.Filters // of directories in the tree after
	held    []func()
}

func newBodies(ctx context.Context, r *repository, root id, b *odb.Batch, changes []providers.Change) *bodies {
	w := &bodies{repo: r, ctx: ctx, batch: b, changes: changes, blobs: make([]blob, len(changes)), made: map[id][]byte{}, root: root,
		places: map[providers.Locator]int{}, filters: map[providers.Locator]*attributes.Filters{}}
	w.over = newRun(r, w.root, changes, w.blobs, w.made)
	for i, c := range changes {
		if !c.Delete {
			w.places[c.Locator] = i
		}
	}
	return w
}

// release lets go of the objects that were kept: by then the head names them, or they are not
// needed.
func (w *bodies) release() {
	for _, f := range w.held {
		f()
	}
}

// run makes the run over another tree, that of the head by now; an error if its filters decide
// otherwise about LFS.
func (w *bodies) run(root id) (*run, error) {
	if root == w.root {
		return w.over, nil
	}
	again := &bodies{repo: w.repo, changes: w.changes, blobs: w.blobs, made: w.made, root: root, places: w.places, filters: map[providers.Locator]*attributes.Filters{}}
	again.over = newRun(w.repo, root, w.changes, w.blobs, w.made)
	for i := range w.changes {
		is, err := again.isLFS(i)
		if err == nil && is != w.blobs[i].isLFS {
			err = fmt.Errorf("others have changed what goes through LFS: %w", providers.ErrUnavailable)
		}
		if err != nil {
			return nil, err
		}
	}
	return again.over, nil
}

// all takes all content: first that of files of attributes, which decide about LFS for the rest.
func (w *bodies) all() error {
	for _, first := range []bool{true, false} {
		if err := w.checkSizes(!first); err != nil {
			return err
		}
		for i, c := range w.changes {
			if c.Delete || c.Dir || isAttributes(c.Locator) != first {
				continue
			}
			if err := w.one(i, c); err != nil {
				return w.failed(c, err)
			}
		}
	}
	if len(w.held) == 0 {
		return nil
	}
	return w.repo.large.store.Sync()
}

// checkSizes refuses files that are too large for git before the content of earlier changes is
// read, once it is known which go through LFS.
func (w *bodies) checkSizes(known bool) error {
	for i, c := range w.changes {
		if !known || c.Delete || c.Body.Size <= maxFile {
			continue
		}
		is, err := w.isLFS(i)
		if err == nil && !is {
			err = tooLarge(c.Body.Size)
		}
		if err != nil {
			return w.failed(c, err)
		}
	}
	return nil
}

// failed names the change that went wrong.
func (w *bodies) failed(c providers.Change, err error) error {
	var e *lfs.Error
	if errors.As(err, &e) {
		return fail(w.ctx, c.Method(), c.Locator, err)
	}
	return providers.Fail(name, c.Method(), c.Locator, err, providers.ErrUnavailable)
}

func isAttributes(l providers.Locator) bool { return l.Name() == attributes.Name }

func (w *bodies) one(i int, c providers.Change) (err error) {
	if w.blobs[i].isLFS, err = w.isLFS(i); err != nil {
		return err
	}
	switch {
	case c.Body.Reader == nil && !c.From.IsRoot():
		return w.take(i, c)
	case w.blobs[i].isLFS:
		return w.large(i, c)
	case isAttributes(c.Locator) && c.Kind != providers.KindSymlink:
		return w.attributes(i, c)
	}
	at, err := putBody(w.ctx, w.batch, c.Body)
	w.blobs[i].id, w.blobs[i].size = at.id, at.size
	return err
}

// attributes takes a file of attributes, and remembers it.
func (w *bodies) attributes(i int, c providers.Change) error {
	var text bytes.Buffer
	if c.Body.Reader != nil {
		c.Body.Reader = io.TeeReader(c.Body.Reader, &firstBytes{&text, attributes.MaxSize})
	}
	at, err := putBody(w.ctx, w.batch, c.Body)
	w.blobs[i].id, w.blobs[i].size = at.id, at.size
	if at.size > attributes.MaxSize {
		text.Reset()
	}
	if err == nil {
		w.made[at.id] = text.Bytes()
	}
	return err
}

// firstBytes keeps the beginning of the content written to it.
type firstBytes struct {
	to   *bytes.Buffer
	most int
}

func (h *firstBytes) Write(b []byte) (int, error) {
	h.to.Write(b[:min(len(b), h.most-h.to.Len())])
	return len(b), nil
}

// isLFS reports whether a change makes a file that goes through LFS.
func (w *bodies) isLFS(i int) (bool, error) {
	c := w.changes[i]
	if c.Delete || c.Dir || c.Kind == providers.KindSymlink || w.over.isWrong() || isAttributes(c.Locator) {
		return false, nil
	}
	f, err := w.filtersOf(c.Locator.Parent())
	return err == nil && f.IsLFS(c.Locator.Parts()), err
}

// filtersOf are those of a directory in the tree after.
func (w *bodies) filtersOf(dir providers.Locator) (f *attributes.Filters, err error) {
	if f, ok := w.filters[dir]; ok {
		return f, nil
	}
	if !dir.IsRoot() {
		if f, err = w.filtersOf(dir.Parent()); err != nil {
			return nil, err
		}
	}
	at, err := dir.Child(attributes.Name)
	if err != nil {
		return nil, err
	}
	file, err := w.fileAt(at)
	if err == nil && !file.IsZero() {
		f, err = w.repo.parsed.With(f, len(dir.Parts()), file, func() ([]byte, error) {
			if text, ok := w.made[file]; ok {
				return text, nil
			}
			return w.repo.attributes(file)
		})
	}
	w.filters[dir] = f
	return f, err
}

// fileAt is the file at a place in the tree after; zero: there is none.
func (w *bodies) fileAt(l providers.Locator) (id, error) {
	n, err := found{}, error(nil)
	switch i, made := w.places[l]; {
	case made && w.changes[i].Kind == providers.KindSymlink && w.changes[i].From.IsRoot(), made && w.changes[i].Dir:
	case made && w.changes[i].From.IsRoot():
		return w.blobs[i].id, nil
	case made:
		n, err = w.over.before.find(w.changes[i].From)
	default:
		_, n, err = w.over.standing(l)
	}
	if err != nil || !n.IsFile() {
		return id{}, err
	}
	return n.ID, nil
}

// large takes content that goes through LFS. Empty content does not, and content that is in LFS
// already keeps its pointer as it is.
func (w *bodies) large(i int, c providers.Change) error {
	if c.Body.Size > lfs.MaxPointer && w.repo.large.offers.Load() == notOffered {
		return errNotOffered
	}
	var begin bytes.Buffer
	p, err := w.keep(func(to io.Writer) error {
		_, err := c.Body.CopyTo(w.ctx, io.MultiWriter(to, &firstBytes{&begin, lfs.MaxPointer + 1}))
		return err
	})
	if err != nil {
		return err
	}
	_, isPointer := lfs.Parse(begin.Bytes())
	is := false
	if p.Size > 0 {
		is, err = w.repo.large.isOffered(w.ctx, p)
	}
	switch {
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case err != nil:
		return errOffline(err)
	case is && isPointer:
		return errPointer
	case is:
		return w.point(i, c, p)
	case p.Size > 0 && !isPointer:
		return errNotOffered
	}
	w.blobs[i].id, err = w.batch.Add(odb.Blob, begin.Bytes())
	w.blobs[i].size = int64(begin.Len())
	return err
}

var (
	errPointer = fmt.Errorf("it is the text of a pointer of LFS, in place of content: %w", providers.ErrUnsupported)
	// errNotOffered keeps content out of git that was meant for LFS.
	errNotOffered = fmt.Errorf("%s says that it goes through LFS, which the server does not offer, or did not when it was asked for this clone: %w", attributes.Name, providers.ErrUnsupported)
)

// keep keeps an object until the set is committed.
func (w *bodies) keep(from func(io.Writer) error) (lfs.Pointer, error) {
	p, release, err := w.repo.large.store.Put(from)
	if err == nil {
		w.held = append(w.held, release)
	}
	return p, err
}

// point has a change make a pointer.
func (w *bodies) point(i int, c providers.Change, p lfs.Pointer) error {
	_, stands, err := w.over.standing(c.Locator)
	if err == nil && stands.pointer != nil && *stands.pointer == p {
		w.blobs[i].id, w.blobs[i].size = stands.ID, stands.Size
		return nil
	}
	text := p.Encode()
	if w.blobs[i].id, err = w.batch.Add(odb.Blob, text); err != nil {
		return err
	}
	w.blobs[i].size, w.made[w.blobs[i].id] = int64(len(text)), text
	return nil
}

// take is for a renamed file that goes through LFS under one of its names only: it keeps the
// content that it shows.
func (w *bodies) take(i int, c providers.Change) error {
	file, f, err := w.over.before.look(c.From)
	if err != nil || !file.IsFile() || w.over.isWrong() || f.IsLFS(c.From.Parts()) == w.blobs[i].isLFS {
		return err
	}
	n, err := w.over.before.find(c.From)
	if err != nil {
		return err
	}
	if !w.blobs[i].isLFS && n.pointer == nil || n.Size == 0 {
		return nil
	}
	if !w.blobs[i].isLFS {
		return w.takeOut(i, *n.pointer)
	}
	return w.takeIn(i, c, n.ID)
}

// takeOut makes content of a pointer.
func (w *bodies) takeOut(i int, p lfs.Pointer) error {
	content, err := w.repo.large.open(w.ctx, p, 0, p.Size)
	if err != nil {
		return err
	}
	defer content.Close()
	at, err := putBody(w.ctx, w.batch, providers.Body{Reader: content, Size: p.Size})
	at.taken = true
	w.blobs[i] = at
	return err
}

// takeIn makes a pointer of content, if the server offers LFS.
func (w *bodies) takeIn(i int, c providers.Change, from id) error {
	if _, is, err := w.repo.pointerIn(from); err != nil || is {
		if is && w.repo.large.offers.Load() != notOffered {
			err = errPointer
		}
		return err
	}
	if w.repo.large.offers.Load() == notOffered {
		return nil
	}
	content, err := w.repo.objects.Open(from, 0)
	if err != nil {
		return err
	}
	defer content.Close()
	p, err := w.keep(func(to io.Writer) error {
		_, err := io.Copy(to, content)
		return err
	})
	if err != nil {
		return err
	}
	if is, err := w.repo.large.isOffered(w.ctx, p); err != nil || !is {
		return w.ctx.Err() // it stays content or pointer, as it is in git
	}
	w.blobs[i].taken = true
	return w.point(i, c, p)
}
