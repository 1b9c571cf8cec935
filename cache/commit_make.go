package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// errUnlearned has a set collected anew, when more is known.
var errUnlearned = fmt.Errorf("%w: ignore files keep changing", upload.ErrAgain)

// errMovedOn has a set collected anew: what it was made of has changed.
var errMovedOn = fmt.Errorf("%w: the content of a commit keeps changing", upload.ErrAgain)

// makeSet makes a set, and has the table say that it is about to be sent, unless it
// is empty. What turns out not to be known well enough for that is found out.
func (c *setCommitter) makeSet(ctx context.Context, due uint64) (s *set, u commit.Unresolved, err error) {
	v := c.v
	for tries := 0; ; tries++ {
		s, u, err = c.tryMakeSet(ctx, due)
		unseen := (*massdelete.UnseenError)(nil)
		switch {
		case errors.As(err, &unseen):
			tries-- // each time there are fewer of them
			err = v.lookInto(ctx, unseen.Dirs)
		case err == nil, !errors.Is(err, errUnlearned) && !errors.Is(err, errMovedOn), tries >= maxTries:
			return s, u, err
		default:
			v.o.Log.Debug("a commit is made anew", "why", err)
			err = v.bringIgnored(ctx, s.Bring)
		}
		if err != nil {
			return nil, u, err
		}
	}
}

// tryMakeSet is makeSet as far as it gets. errUnlearned and errMovedOn say that it
// is to be made anew.
func (c *setCommitter) tryMakeSet(ctx context.Context, due uint64) (s *set, u commit.Unresolved, err error) {
	if err := c.v.learnForCommit(ctx); err != nil {
		return nil, u, err
	}
	c.v.kept.End() // of the try before
	was := c.v.takeSnapshot(true)
	defer was.end()
	s, err = c.collect(ctx, was, due)
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
	if err := c.mayCommit(s, was, due); err != nil {
		return s, u, err
	}
	c.sieve(s)
	u, err = c.begin(s, was)
	return s, u, err
}

// collect is commit.Collect of a snapshot.
func (c *setCommitter) collect(ctx context.Context, was *snapshot, due uint64) (*set, error) {
	m := &commit.Moment{View: was.View.View, Capabilities: was.caps, Planner: was.planner, Next: was.next,
		IsWriting: was.isWriting, Loose: was.loose, Held: was.held, Because: was.because,
		Guard: &was.o.Guard, Found: was.found, AttrOf: was.attrOf,
		Progress: func(done, total int) { c.v.doing.goesOn(doesCollect, done, total) }}
	if was.ignoring() {
		m.Rules = ignoreRules{was.View}
	}
	s, err := commit.Collect(ctx, m, due)
	return &set{Set: s}, err
}

// ignoreRules are the ignore files of a snapshot, as commit.Rules.
type ignoreRules struct{ v *View }

func (r ignoreRules) Carriers() (rules.Carriers, []table.Link) { return rules.CarriersOf(r.v) }

func (r ignoreRules) Sorted(l table.Link, rec table.Name, n *table.Inode, c rules.Carriers) (stays, ok bool) {
	return r.v.sorted(l, rec, n, c)
}

func (r ignoreRules) IsLearned(l table.Link, n *table.Inode) bool {
	_, sure := r.v.ignores.Ignored(r.v, l, n.IsDir())
	return sure
}

// keepFound forgets the findings that turned out not to hold any more.
func (c *setCommitter) keepFound(was *snapshot) {
	locked := c.v.lock()
	defer locked.unlock()
	c.found.Keep(was.found)
}

// sortOut has names stay here that are ignored, and no name be where the backend
// cannot have it.
func (c *setCommitter) sortOut(s *set) error {
	v := c.v
	for piece := range slices.Chunk(slices.Collect(maps.Keys(s.Stays)), setPiece) {
		err := v.update(func(v *Tx) error {
			for _, l := range piece {
				rec := v.Record(l)
				v.resort(l, rec, v.table.Inode(rec.Ino), s.Carriers)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(s.Astray) == 0 {
		return nil
	}
	return v.update(func(v *Tx) error {
		for _, l := range s.Astray {
			if _, there := v.RemotePath(l); there || v.Record(l).Remote == nil {
				continue
			}
			// The backend cannot have a name in a directory that it does not have:
			// if it has, it will say so when this is sent as new.
			v.o.Log.Warn("a name without its directory at the backend is sent as new", "name", l.Name)
			v.SetRemote(l, nil)
		}
		return nil
	})
}

// mayCommit asks the rule of massdelete.go about a set.
func (c *setCommitter) mayCommit(s *set, was *snapshot, due uint64) error {
	v := c.v
	deleted, inRoot, madeInRoot := s.Deletions()
	reason, unseen := massdelete.TooMuchForCommit(was, deleted, inRoot, madeInRoot)
	return v.update(func(v *Tx) error {
		err := v.judgeCommit(reason, unseen)
		switch {
		case err == nil:
			c.v.engine.halt.err = nil
			c.v.engine.halt.harmless(v.View, due)
		case errors.Is(err, ErrMassDelete):
			c.v.engine.halt.err = err
		}
		return err
	})
}

// sieve takes what has vanished out of a set.
func (c *setCommitter) sieve(s *set) {
	var gone []table.Link
	_ = c.inPieces(doesCollect, s.Order, func(_ int, piece []*commit.Planned) error {
		locked := c.v.lock()
		defer locked.unlock()
		gone = append(gone, locked.unmade(piece)...)
		return nil
	})
	if len(gone) > 0 {
		s.Without(gone)
	}
}

// unmade are those of the names whose directory, or what they stand for, is no more:
// they were made and removed since the set was collected.
func (v *View) unmade(names []*commit.Planned) (gone []table.Link) {
	for _, p := range names {
		if v.table.Inode(p.Link.Dir) == nil || p.Ino != 0 && v.table.Inode(p.Ino) == nil {
			gone = append(gone, p.Link)
		}
	}
	return gone
}
