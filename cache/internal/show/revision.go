package show

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/providers"
)

// revision shows the tree of a revision that the store knows, at a path that begins with its name,
// or enough of it.
func (s *Shower) revision(ctx context.Context, path string) (e Entry, err error) {
	defer func() { err = missing(err) }()
	name, at, _ := strings.Cut(path, "/")
	store, ok := providers.As[providers.Snapshotter](s.o.Remote)
	l, err := providers.ParseLocator(at)
	if !ok || err != nil {
		return e, syscall.ENOENT
	}
	found, err := store.Find(ctx, name)
	if err != nil {
		return e, err
	}
	then, err := store.At(ctx, found.Revision)
	if err != nil {
		return e, err
	}
	defer then.Close()
	info, err := then.Stat(ctx, l)
	if err != nil {
		return e, err
	}
	e.Size = info.Size
	switch info.Kind {
	case providers.KindDir:
		e.Exec = true
		e.Names, err = namesOf(ctx, then, l)
		return e, err
	case providers.KindSymlink:
		e.Target, err = past.ReadTarget(ctx, then, l)
		return e, err
	}
	e.Exec = info.Attr.Valid&providers.AttrExec != 0 && info.Attr.Mode&0o100 != 0
	e.Open = func(ctx context.Context) (File, error) {
		f, err := s.open(ctx, store, found.Revision, l)
		return f, missing(err)
	}
	return e, nil
}

// open opens a file of a revision.
func (s *Shower) open(ctx context.Context, store providers.Snapshotter, r providers.Revision, l providers.Locator) (File, error) {
	then, err := store.At(ctx, r)
	if err != nil {
		return nil, err
	}
	c, err := providers.Stream(ctx, then, l, providers.ReadOptions{})
	if err != nil {
		then.Close()
		return nil, err
	}
	return s.readable(&past.Body{ReadCloser: c.Body, Revision: then})
}

// maxCommits bounds the commits that are listed.
const maxCommits = 50

// lastCommits are the names of the last revisions of the head.
func (s *Shower) lastCommits(ctx context.Context) (names []string) {
	store, ok := revision.StoreOf(s.o.Remote)
	if !ok {
		return nil
	}
	next, err := store.Head(ctx)
	for err == nil && next != "" && len(names) < maxCommits {
		var found providers.Found
		if found, err = store.Find(ctx, string(next)); err == nil {
			names = append(names, string(next)+"/")
			if next = ""; len(found.Parents) > 0 {
				next = found.Parents[0]
			}
		}
	}
	return names
}

// missing turns the error of an unknown revision or path into syscall.ENOENT.
func missing(err error) error {
	for _, kind := range []error{providers.ErrNotExist, providers.ErrNotDir, providers.ErrInvalid} {
		if errors.Is(err, kind) {
			return syscall.ENOENT
		}
	}
	return err
}

// namesOf are the names in a directory, as an Entry has them.
func namesOf(ctx context.Context, p providers.Provider, dir providers.Locator) ([]string, error) {
	names := []string{}
	for info, err := range providers.All(ctx, p, dir, providers.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		name := info.Locator.Name()
		if info.Kind == providers.KindDir {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}
