package cache

import (
	"context"
	"io"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/show"
	"github.com/wsmount/wsmount/fs"
)

var _ fs.Shower = (*Volume)(nil)

// Show implements fs.Shower, with the files of package show. Only the owner of the mount may read
// it: a version may date from a time when other users could not.
func (v *Volume) Show(op *fs.Op, path string) (fs.Shown, error) {
	w := v.waits.For(op, v.o.Patience)
	defer w.Close()
	e, err := v.shows.Show(w, path)
	s := fs.Shown{Names: e.Names, Size: e.Size, Mtime: e.Time, Target: e.Target, Mode: 0o400, UID: v.o.Owner.UID, GID: v.o.Owner.GID}
	switch {
	case err != nil:
		return fs.Shown{}, errno.Translate(w.Cause(err))
	case e.Target != "":
		s.Mode = 0o777
	case e.Exec:
		s.Mode = 0o500
	case e.Names != nil: // of directories whose files only the owner may read
		s.Mode, s.UID, s.GID = 0o555, 0, 0
	}
	if e.Open != nil {
		s.Open = func(op *fs.Op) (fs.ShownFile, error) {
			w := v.waits.For(op, v.o.Patience)
			defer w.Close()
			f, err := e.Open(w)
			if err != nil {
				return nil, errno.Translate(w.Cause(err))
			}
			return f, nil
		}
	}
	return s, nil
}

func newShower(v *Volume) *show.Shower {
	return show.New(show.Options{Log: v.past, Remote: v.p, Conflicts: v.shownConflicts, Dir: v.state.Path, Now: v.o.Now,
		Changes: func() uint64 {
			locked := v.lock()
			defer locked.unlock()
			return locked.updates
		}})
}

func (v *Volume) shownConflicts() (all []show.Conflict) {
	for _, c := range v.Conflicts() {
		side := func(s Side, size int64) show.Side {
			return show.Side{Name: s.String(), Size: size, Open: func(ctx context.Context) (io.ReadCloser, error) {
				return v.ConflictContent(ctx, c.Path, s)
			}}
		}
		sides := []show.Side{side(SideOurs, c.Ours)}
		if !c.Base.IsZero() {
			sides = append(sides, side(SideBase, c.Base.Size))
		}
		if !c.Theirs.IsZero() {
			sides = append(sides, side(SideTheirs, c.Theirs.Size))
		}
		all = append(all, show.Conflict{Path: c.Path, Since: c.Since, Sides: sides})
	}
	return all
}
