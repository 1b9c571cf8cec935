package git

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/index"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// indices are the indices that the git program was shown last: of the head, made on the first
// request, and of the head with the changed paths.
type indices struct {
	mu      sync.Mutex // held while an index is made; guards all below
	head    *indexFile
	entries *index.Entries // of head
	changed *indexFile     // may be head
}

// indexFile is an index in a file that has no name any more. It is closed when it is not the
// last, and no reader has it open.
type indexFile struct {
	*os.File
	of   id
	key  string // hash of the changed paths
	size int64

	mu    sync.Mutex
	users int
}

// use notes that n more have it. It reports whether it was still open.
func (f *indexFile) use(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == 0 {
		return false
	}
	if f.users += n; f.users == 0 {
		f.File.Close()
	}
	return true
}

// Close ends one use; nil: none.
func (f *indexFile) Close() error {
	if f != nil {
		f.use(-1)
	}
	return nil
}

// index is the index of the working copy in its present state.
func (g *gitTree) index(ctx context.Context) (providers.Exhibit, error) {
	head, paths, err := g.work(ctx)
	if err != nil || head == "" {
		return providers.Exhibit{}, firstError(err, providers.ErrNotExist)
	}
	f, err := g.indexOf(head, paths)
	if err != nil {
		return providers.Exhibit{}, err
	}
	return providers.Exhibit{Size: f.size, Time: g.since, Version: f.of.String() + f.key, Open: func() (providers.ExhibitFile, error) {
		if !f.use(1) { // there is another one by now
			return nil, providers.ErrConflict
		}
		return f, nil
	}}, nil
}

func (g *gitTree) indexOf(head providers.Revision, paths []string) (*indexFile, error) {
	commit, err := g.p.repo.commitOf(head)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.Join(paths, "\x00")))
	key, in := string(sum[:]), &g.indices
	in.mu.Lock()
	defer in.mu.Unlock()
	if f := in.changed; f != nil && f.of == commit && f.key == key {
		return f, nil
	}
	if in.head == nil || in.head.of != commit {
		made, entries, err := g.makeIndex(commit)
		if err != nil {
			return nil, err
		}
		in.head.Close()
		in.head, in.entries = made, entries
	}
	f := in.head
	if len(paths) == 0 {
		f.use(1)
	} else if f, err = g.changeIndex(in.head, in.entries, paths); err != nil {
		return nil, err
	}
	in.changed.Close()
	f.key, in.changed = key, f
	return f, nil
}

// makeIndex makes the index of a commit.
func (g *gitTree) makeIndex(commit id) (*indexFile, *index.Entries, error) {
	v, err := g.p.repo.viewOf(commit)
	if err != nil {
		return nil, nil, err
	}
	f, err := g.p.repo.objects.Scratch("index-")
	if err != nil {
		return nil, nil, err
	}
	made := &indexFile{File: f, of: commit, users: 1}
	entries, err := index.Write(f, index.Source{Root: v.root, Tree: v.tree, Token: v.commit.String(), Hidden: trees.Hidden, Place: g.root, Exclude: g.hide})
	if err == nil {
		made.size, err = f.Seek(0, io.SeekCurrent)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return made, entries, nil
}

// changeIndex makes the index of the head with changed paths.
func (g *gitTree) changeIndex(head *indexFile, entries *index.Entries, paths []string) (*indexFile, error) {
	f, err := g.p.repo.objects.Scratch("index-")
	if err != nil {
		return nil, err
	}
	made := &indexFile{File: f, of: head.of, size: head.size, users: 1}
	_, err = io.Copy(f, io.NewSectionReader(head.File, 0, head.size))
	if err == nil {
		err = entries.Except(f, made.size, paths)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return made, nil
}
