package cache

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// showPast shows the tree of a revision that the store knows, at a path below
// history that begins with its name, or enough of it. ENOENT when there is none.
func (v *Volume) showPast(ctx context.Context, path string) (fs.Shown, error) {
	revision, at, _ := strings.Cut(path, "/")
	s, ok := providers.As[providers.Snapshotter](v.p)
	l, err := providers.ParseLocator(at)
	if !ok || err != nil {
		return fs.Shown{}, syscall.ENOENT
	}
	found, err := s.Find(ctx, revision)
	if err != nil {
		return fs.Shown{}, pastError(err)
	}
	then, err := s.At(ctx, found.Revision)
	if err != nil {
		return fs.Shown{}, pastError(err)
	}
	defer then.Close()
	info, err := then.Stat(ctx, l)
	if err != nil {
		return fs.Shown{}, pastError(err)
	}
	shown := fs.Shown{UID: v.o.Owner.UID, GID: v.o.Owner.GID, Mode: 0o400, Size: info.Size}
	switch info.Kind {
	case providers.KindDir:
		shown.Mode = 0o500
		shown.Names, err = namesOf(ctx, then, l)
		return shown, err
	case providers.KindSymlink:
		shown.Mode = 0o777
		shown.Target, err = past.ReadTarget(ctx, then, l)
		return shown, translate(err)
	}
	if info.Attr.Valid&providers.AttrExec != 0 && info.Attr.Mode&0o100 != 0 {
		shown.Mode = 0o500
	}
	shown.Open = func(op *fs.Op) (fs.ShownFile, error) {
		w := v.wait(op, v.o.Patience)
		defer w.close()
		then, err := s.At(w, found.Revision)
		if err != nil {
			return nil, pastError(err)
		}
		c, err := then.Read(w, l, providers.ReadOptions{})
		if err != nil {
			then.Close()
			return nil, pastError(err)
		}
		return v.readable(&past.Body{ReadCloser: c.Body, Revision: then})
	}
	return shown, nil
}

// maxCommits bounds the commits that are listed.
const maxCommits = 50

// lastCommits are the names of the last revisions of the head.
func (v *Volume) lastCommits(ctx context.Context) (names []string) {
	s, ok := v.syncer()
	if !ok {
		return nil
	}
	next, err := s.Head(ctx)
	for err == nil && next != "" && len(names) < maxCommits {
		var found providers.Found
		if found, err = s.Find(ctx, string(next)); err == nil {
			names = append(names, string(next)+"/")
			if next = ""; len(found.Parents) > 0 {
				next = found.Parents[0]
			}
		}
	}
	return names
}

// pastError is an error of a revision: one that is not known is not there.
func pastError(err error) error {
	if notThere(err) || errors.Is(err, providers.ErrInvalid) {
		return syscall.ENOENT
	}
	return translate(err)
}

// namesOf lists a directory as a Shown does.
func namesOf(ctx context.Context, p providers.Provider, dir providers.Locator) ([]string, error) {
	names := []string{}
	for info, err := range providers.All(ctx, p, dir, providers.ListOptions{}) {
		if err != nil {
			return nil, translate(err)
		}
		name := info.Locator.Name()
		if info.Kind == providers.KindDir {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}
