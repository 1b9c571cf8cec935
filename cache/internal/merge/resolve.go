package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"time"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// ErrNoConflict says that nothing is held back as a conflict at a path.
var ErrNoConflict = errors.New("no conflict at this path")

// ConflictInfo is a name that was changed locally and at the remote, and is held until a person
// resolves it. Policies Abort and Manual make such; SplitConflicts makes files instead.
type ConflictInfo struct {
	Path   string
	Reason string
	Since  time.Time
	// Base is the version that ours began from; zero for none. Theirs is the remote's when it was
	// last asked.
	Base, Theirs providers.Version
	Ours         int64          // bytes of our content
	Kind         providers.Kind // of theirs
}

// Side is a side of a conflict.
type Side uint8

// The sides.
const (
	SideBase Side = iota
	SideOurs
	SideTheirs
)

// String is "base", "ours" or "theirs".
func (s Side) String() string {
	return [...]string{"base", "ours", "theirs", "unknown"}[min(s, 3)]
}

// Resolution says how a conflict ends.
type Resolution struct {
	// Keep is SideOurs or SideTheirs. The other side goes to the history; ErrTooLarge: it has
	// no room there.
	Keep Side
	// Both keeps ours under the name of a conflict copy, and theirs.
	Both bool
	// Content, if not nil, takes the place of both.
	Content io.Reader
}

// Conflicts are the conflicts of a working copy that are held back.
type Conflicts struct{ v *Merger }

// Held are the conflicts of the names that a Merger merges.
func (v *Merger) Held() *Conflicts { return &Conflicts{v} }

// Conflicts lists the names held back as conflicts, in the order in which they became dirty.
func (c *Conflicts) Conflicts() []ConflictInfo {
	locked := c.v.lock()
	defer locked.unlock()
	var all []ConflictInfo
	locked.Dirty(0, func(_ uint64, l table.Link) bool {
		rec := locked.Record(l)
		if rec.Held != nil && rec.Held.Conflict {
			all = append(all, locked.conflictOf(l, rec))
		}
		return true
	})
	return all
}

// conflictOf describes a name that is held.
func (v view) conflictOf(l table.Link, rec table.Name) ConflictInfo {
	at, _ := v.LocalPath(l)
	side, _ := reconcile.DecodeHeld(rec.Held.Remote)
	c := ConflictInfo{Path: at.String(), Reason: rec.Held.Reason, Since: time.Unix(0, side.Since),
		Theirs: side.Info.Version, Kind: side.Info.Kind}
	if rec.Remote != nil && rec.Remote.Version != upload.Impossible {
		c.Base = rec.Remote.Version
	}
	if n := v.Inode(rec.Ino); n != nil {
		c.Ours = n.Size
	}
	return c
}

// heldAt finds a conflict by path.
func (v view) heldAt(path string) (l table.Link, rec table.Name, theirs providers.Info, err error) {
	at, err := providers.ParseLocator(path)
	if err != nil || at.IsRoot() {
		return l, rec, theirs, fmt.Errorf("%q: %w", cmp.Or(path, "/"), ErrNoConflict)
	}
	l = table.Link{Dir: table.Root}
	for i, name := range at.Parts() {
		if i > 0 {
			l.Dir = rec.Ino
		}
		l.Name = name
		rec, _ = v.Name(l.Dir, l.Name)
	}
	side, ok := reconcile.Held{}, false
	if rec.Held != nil && rec.Held.Conflict {
		side, ok = reconcile.DecodeHeld(rec.Held.Remote)
	}
	if !ok {
		return l, rec, theirs, fmt.Errorf("%q: %w", path, ErrNoConflict)
	}
	return l, rec, side.Info, nil
}

// ConflictContent opens one side of a conflict; the caller closes it. iofs.ErrNotExist: the side has
// no content, or the remote and the history have lost it. A side that changes much while it is read,
// or breaks off, is an error of the reader.
func (c *Conflicts) ConflictContent(ctx context.Context, path string, s Side) (io.ReadCloser, error) {
	v := c.v
	locked := v.lock()
	l, rec, theirs, err := locked.heldAt(path)
	locked.unlock()
	if err != nil {
		return nil, err
	}
	switch s {
	case SideOurs:
		return v.oursOf(ctx, rec.Ino)
	case SideTheirs:
		return v.readVersion(ctx, theirs.Locator, theirs.Version)
	case SideBase:
		return v.baseOfConflict(ctx, l, rec)
	}
	return nil, fmt.Errorf("%w: side %d", iofs.ErrInvalid, s)
}

// oursOf opens the present content of an inode.
func (v *Merger) oursOf(ctx context.Context, x table.Ino) (ours io.ReadCloser, err error) {
	err = v.useLocal(ctx, x, func(body io.ReadCloser, _ int64) error {
		ours = body
		return nil
	})
	return ours, errno.Translate(err)
}

// Resolve ends a conflict. The kept side is sent on condition that the remote still has the
// version compared with: if that changed again, there is a new conflict.
func (c *Conflicts) Resolve(ctx context.Context, path string, r Resolution) error {
	v := c.v
	if r.Content != nil {
		return v.resolveWith(ctx, path, r.Content)
	}
	m := v.New(ctx, v.o.Provider)
	err := m.Run(func(v *Tx) error {
		s, err := m.heldSides(v, path)
		if err != nil {
			return err
		}
		switch {
		case r.Both && s.rec.Ino != 0:
			if s.compareContent(s.rec.Ino) {
				s.split()
			}
		case r.Keep == SideTheirs:
			s.takeTheirs()
		case r.Keep == SideOurs:
			return s.overwritten(s.overwrite)
		default:
			return fmt.Errorf("%w: a conflict cannot end with %v", iofs.ErrInvalid, r.Keep)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.unanswered()
}

// ErrTooLarge says that a conflict cannot end with the remote's version overwritten: it is larger
// than the history may be, and would be lost.
var ErrTooLarge = errors.New("the remote version is larger than the history may be, and would be lost")

// overwritten runs do, which has the remote's version overwritten, once that is in the history: until
// then the question whether it is stays unanswered.
func (s *sides) overwritten(do func()) error {
	switch s.keptTheirs(s.l, s.theirs) {
	case reconcile.TooLarge:
		return ErrTooLarge
	case reconcile.Kept:
		do()
	}
	return nil
}

// heldSides are the sides of a conflict that is about to end.
func (m *Merge) heldSides(v *Tx, path string) (*sides, error) {
	l, _, theirs, err := v.heldAt(path)
	if err != nil {
		return nil, err
	}
	s := m.at(v, l, &theirs)
	s.rec.Held = nil
	return s, nil
}

// resolveWith puts new content in the place of both sides.
func (v *Merger) resolveWith(ctx context.Context, path string, content io.Reader) error {
	locked := v.lock()
	_, _, _, err := locked.heldAt(path)
	locked.unlock()
	if err != nil {
		return err
	}
	made, err := files.Make(ctx, v.o.Tree, v.o.Store, path, content)
	if err != nil {
		return err
	}
	m := v.New(ctx, v.o.Provider)
	err = m.Run(func(v *Tx) error {
		s, err := m.heldSides(v, path)
		if err != nil {
			return err
		}
		return s.overwritten(func() { s.put(made) })
	})
	if err = errors.Join(err, m.unanswered()); err != nil {
		v.o.Store.Remove(made.Ino)
	}
	return err
}
