package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// errUnlearned asks for a new set, once more rules are known.
var errUnlearned = fmt.Errorf("%w: ignore files keep changing", upload.ErrAgain)

// errMovedOn asks for a new set: the content of this one has changed.
var errMovedOn = fmt.Errorf("%w: the content of a commit keeps changing", upload.ErrAgain)

// makeSet makes a set, and records in the table that it is about to be sent, unless it is empty.
// If rules, content or directories turn out to be missing for that, it fetches them first.
func (c *Committer) makeSet(ctx context.Context, due uint64) (s *Set, u Unresolved, err error) {
	for tries := 0; ; tries++ {
		s, u, err = c.tryMake(ctx, due)
		unseen := (*massdelete.UnseenError)(nil)
		switch {
		case errors.As(err, &unseen):
			tries-- // each time there are fewer of them
			err = c.o.Judge.LookInto(ctx, unseen.Dirs)
		case err == nil, !errors.Is(err, errUnlearned) && !errors.Is(err, errMovedOn), tries >= maxTries:
			return s, u, err
		default:
			c.o.Log.Debug("a commit is made anew", "why", err)
			err = c.o.Ignores.Bring(ctx, s.Bring)
		}
		if err != nil {
			return nil, u, err
		}
	}
}

// tryMake is one try of makeSet. errUnlearned and errMovedOn say that the set is to be made anew.
func (c *Committer) tryMake(ctx context.Context, due uint64) (s *Set, u Unresolved, err error) {
	if err := c.o.Ignores.Learn(ctx); err != nil {
		return nil, u, err
	}
	c.o.Kept.End() // of the try before
	was, release := c.moment()
	defer release()
	s, err = Collect(ctx, was, due)
	defer s.Made()
	if err == nil {
		c.keepFound(was)
		err = c.sortOut(s)
	}
	switch {
	case err != nil:
		return s, u, err
	case s.Unsure, len(s.Bring) > 0, len(s.Astray) > 0:
		return s, u, errUnlearned
	}
	deleted, inRoot, madeInRoot := s.Deletions()
	reason, unseen := massdelete.TooMuchForCommit(was, deleted, inRoot, madeInRoot)
	if err := c.o.Judge.MayDelete(due, reason, unseen); err != nil {
		return s, u, err
	}
	c.sieve(s)
	u, err = c.begin(s, was)
	return s, u, err
}

// moment is the working copy as it is now.
func (c *Committer) moment() (was *Moment, release func()) {
	c.o.Tree.Lock()
	found := c.found.Clone()
	c.o.Tree.Unlock()
	was, release = c.o.Take()
	was.Guard, was.Found = c.o.Guard, found
	was.Progress = func(done, total int) { c.o.Monitor.Progress(Collecting, done, total) }
	return was, release
}

// keepFound forgets findings that turned out not to hold any more.
func (c *Committer) keepFound(was *Moment) {
	c.o.Tree.Lock()
	defer c.o.Tree.Unlock()
	c.found.Keep(was.Found)
}

// sortOut makes ignored names stay local, and forgets remote entries where the remote cannot have
// them.
func (c *Committer) sortOut(s *Set) error {
	for piece := range slices.Chunk(slices.Collect(maps.Keys(s.Stays)), PieceSize) {
		if err := c.o.Ignores.Sort(piece, s.Carriers); err != nil {
			return err
		}
	}
	if len(s.Astray) == 0 {
		return nil
	}
	return c.o.Volume.Update(func(tx upload.Tx) error {
		for _, l := range s.Astray {
			if _, there := tx.RemotePath(l); there || tx.Record(l).Remote == nil {
				continue
			}
			// The remote cannot have a name in a directory that it does not have: if it has, the
			// name sent as new is refused.
			c.o.Log.Warn("a name without its directory at the store is sent as new", "name", l.Name)
			tx.SetRemote(l, nil)
		}
		return nil
	})
}

// sieve takes names that have vanished out of a set.
func (c *Committer) sieve(s *Set) {
	var gone []table.Link
	_ = c.inPieces(Collecting, s.Order, func(_ int, names []*Planned) error {
		v := c.o.Tree.Lock()
		defer c.o.Tree.Unlock()
		gone = append(gone, unmade(v, names)...)
		return nil
	})
	if len(gone) > 0 {
		s.Without(gone)
	}
}

// unmade are the names whose directory or inode does not exist any more: it was made and removed
// since the set was collected.
func unmade(v *tree.View, names []*Planned) (gone []table.Link) {
	for _, p := range names {
		if v.Inode(p.Link.Dir) == nil || p.Ino != 0 && v.Inode(p.Ino) == nil {
			gone = append(gone, p.Link)
		}
	}
	return gone
}
