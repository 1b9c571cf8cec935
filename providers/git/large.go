package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// large is the content that a repository has in LFS. Whether the server offers LFS is asked when
// it first matters, which is before any name is given the size of such content, and the answer
// holds for the clone: sizes and versions depend on it.
type large struct {
	repo   *repository
	client *lfs.Client
	store  *lfs.Store // objects that the server has not got yet

	asking chan struct{} // holds a token while the server is asked, or the answer written
	offers atomic.Int32
}

// Whether the server offers LFS.
const (
	unknown = iota
	offered
	notOffered
)

// unasked is the word of clone.json for an unknown answer.
const unasked = "unasked"

// offerings are the answers in words of clone.json. A clone without a word is from a time when
// pointers were files like others, and callers remember its files so.
var offerings = map[string]int32{"": notOffered, unasked: unknown, "offered": offered, "not offered": notOffered}

const largeName = "lfs"

func newLarge(r *repository, m *remote.Remote, o Options) *large {
	g := &large{repo: r, asking: make(chan struct{}, 1),
		client: lfs.New(lfs.Options{Find: m.Large, Transport: o.Transport, Now: o.Now}),
		store:  lfs.OpenStore(filepath.Join(r.private, largeName), r.objects.Tmp(), r.space)}
	if r.state.Cloned { // else it is about to be
		g.offers.Store(offerings[r.state.LFS])
	}
	return g
}

// isOffered asks the server, by an object, unless it is known.
func (g *large) isOffered(ctx context.Context, p lfs.Pointer) (bool, error) {
	if is := g.offers.Load(); is != unknown {
		return is == offered, nil
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if is := g.offers.Load(); is != unknown {
		return is == offered, nil
	}
	is, err := g.client.Offered(ctx, p)
	if err != nil {
		return false, err
	}
	word := "not offered"
	if is {
		word = "offered"
	}
	if err := g.repo.setLFS(word); err != nil {
		return false, err
	}
	g.offers.Store(offerings[word])
	return is, nil
}

// pointer is the pointer that an entry has in place of its content; nil when it has content.
// parts is its path.
func (g *large) pointer(ctx context.Context, f *attributes.Filters, parts []string, e object.Entry, size int64) (*lfs.Pointer, error) {
	if !g.mayBe(f, parts, e.Mode, size) {
		return nil, nil
	}
	text, err := g.repo.objects.Get(e.ID, odb.Blob)
	if err != nil {
		return nil, err
	}
	p, ok := lfs.Parse(text)
	if !ok {
		return nil, nil
	}
	if is, err := g.isOffered(ctx, p); err != nil || !is {
		return nil, err
	}
	return &p, nil
}

// mayBe reports whether an entry is a pointer if it is the text of one.
func (g *large) mayBe(f *attributes.Filters, parts []string, m object.Mode, size int64) bool {
	return f != nil && size > 0 && size <= lfs.MaxPointer && !m.IsLink() && g.offers.Load() != notOffered && f.IsLFS(parts)
}

// open opens a part of content: of the local object, or the server's.
func (g *large) open(ctx context.Context, p lfs.Pointer, offset, length int64) (io.ReadCloser, error) {
	f, err := g.store.Open(p)
	switch {
	case err == nil:
		return span{io.NewSectionReader(f, offset, length), f}, nil
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return g.client.Open(ctx, p, offset, length)
}

// upload sends the objects that a commit and its history name and the server may not have: those
// of own commits that it has not got.
func (g *large) upload(ctx context.Context, opts providers.PushOptions, head id) error {
	if none, err := g.store.Empty(); err != nil || none {
		return err
	}
	known, err := g.repo.atRemote()
	if err != nil {
		return err
	}
	named, err := g.repo.objectsOf(known, head)
	if err != nil {
		return err
	}
	var send []lfs.Pointer
	for _, o := range named {
		if g.store.Has(o) {
			send = append(send, o)
		}
	}
	if len(send) == 0 {
		return nil
	}
	open := func(o lfs.Pointer) (io.ReadCloser, error) {
		f, err := g.store.Open(o)
		return told(f, opts.Sent), err
	}
	err = g.client.Upload(ctx, headRef(opts.Branch), send, open, func(o lfs.Pointer) {
		if opts.Sent != nil {
			opts.Sent(int(o.Size))
		}
	})
	if err != nil {
		return fmt.Errorf("large files: %w", err)
	}
	return nil
}

// sweep removes the objects that no commit names which the server may lack, while no commit is
// made.
func (g *large) sweep(moving) error {
	if none, err := g.store.Empty(); err != nil || none {
		return err
	}
	known, err := g.repo.atRemote()
	if err != nil {
		return err
	}
	ours, err := g.repo.tips("refs/heads/", "refs/wsmount/left/")
	if err != nil {
		return err
	}
	named, err := g.repo.objectsOf(known, ours...)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, o := range named {
		wanted[o.OID] = true
	}
	return g.store.Sweep(wanted)
}

// atRemote are the commits that the server is known to have.
func (r *repository) atRemote() ([]id, error) { return r.tips("refs/remotes/origin/") }

// tips are the commits that references name.
func (r *repository) tips(below ...string) (all []id, err error) {
	for _, prefix := range below {
		refs, err := r.refs.List(prefix)
		if err != nil {
			return nil, err
		}
		for _, c := range refs {
			all = append(all, c)
		}
	}
	return all, nil
}

// objectsOf are the objects that some commits brought, and commits before them that are not in
// the history of others: each once.
func (r *repository) objectsOf(others []id, of ...id) (all []lfs.Pointer, err error) {
	seen := map[id]bool{}
	for _, tip := range of {
		commits, err := r.newCommits(tip, others)
		if err != nil {
			return nil, err
		}
		for _, c := range commits {
			if seen[c] {
				continue
			}
			seen[c] = true
			if err := r.brought(c, func(blob id) error {
				if seen[blob] {
					return nil
				}
				seen[blob] = true
				if r.partial.IsPromised(blob) {
					return nil // it came from the server
				}
				p, ok, err := r.pointerIn(blob)
				if ok {
					all = append(all, p)
				}
				return err
			}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// brought calls found with each file of a commit that its parent does not have.
func (r *repository) brought(c id, found func(blob id) error) error {
	commit, err := r.commit(c)
	if err != nil {
		return err
	}
	var parent id
	if len(commit.Parents) > 0 {
		parent = commit.Parents[0]
	}
	before, err := r.viewOf(parent)
	if err != nil {
		return err
	}
	after, err := r.viewOf(c)
	if err != nil {
		return err
	}
	return r.compare(before, after, true, func(_ string, _, f *object.Entry) error {
		if f == nil || f.Mode.IsDir() || f.Mode.IsSubmodule() || f.Mode.IsLink() {
			return nil
		}
		return found(f.ID)
	})
}

// pointerIn is the pointer whose text a blob is.
func (r *repository) pointerIn(blob id) (p lfs.Pointer, ok bool, err error) {
	size, err := r.objects.Size(blob)
	if err != nil || size > lfs.MaxPointer {
		return p, false, err
	}
	text, err := r.objects.Get(blob, odb.Blob)
	if err != nil {
		return p, false, err
	}
	p, ok = lfs.Parse(text)
	return p, ok, nil
}

// errOffline is the error for content while it is not known whether it goes to LFS. It is the
// file's, and does not hold up other files.
func errOffline(err error) error {
	return fmt.Errorf("it goes to LFS, and whether the server offers that is not known (%v): %w", err, providers.ErrUnsupported) // it must not count as the server's
}
