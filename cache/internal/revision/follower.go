package revision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Waiting is a context that ends when nothing has moved for too long.
type Waiting interface {
	context.Context
	Moved() // says that something has moved
}

// Host is the working copy whose head moves.
type Host interface {
	// Update runs do as one change of the tree.
	Update(do func(*tree.Tx) error) error
	// Patiently runs do with a context that ends with ctx, and when nothing has moved for too
	// long: then the error is of kind providers.ErrUnavailable, and says so.
	Patiently(ctx context.Context, do func(Waiting) error) error
	// Retry runs do until it succeeds or fails for good.
	Retry(ctx context.Context, do func(ctx context.Context) error) error
	// Resolve finds out whether a change set whose answer was lost took effect: afterwards its
	// changes are in the head, or never will be.
	Resolve(ctx context.Context, head Moving) error
}

// Names are a working copy's records of the remote's names.
type Names interface {
	// Compare finds the differences between the entries that a provider shows and the known names,
	// at the places where two revisions differ, of which the table has the first. CompareAll looks
	// at all known names. The provider is asked again until End.
	Compare(w Waiting, p providers.Provider, diffs []providers.Difference) (Comparison, error)
	CompareAll(w Waiting, p providers.Provider) (Comparison, error)
	// List loads the names in a directory, and Fetch the content of a file or link.
	List(w Waiting, head Held, dir table.Ino) error
	Fetch(w Waiting, ino table.Ino, kind providers.Kind) error
	// Passed says that the names are those of another branch now, which ends any halt of a pull:
	// it is called in the transaction that notes the branch.
	Passed(tx *tree.Tx)
}

// A Comparison is a set of differences to be applied to a working copy.
type Comparison interface {
	// Check fails if Apply would, because it deletes too much.
	Check(head Held, d Deletions) error
	// Apply shows them to programs, all at once. If nothing is left out, the table has a revision
	// then.
	Apply(head Held, r providers.Revision, d Deletions) (PullReport, error)
	End()
}

// Deletions says where entries go that a comparison deletes.
type Deletions int

// With Gone they are lost, and so many deletions that they look like an accident halt the pull.
// With Kept they stay on the branch that they were on, and any number may go.
const (
	Gone Deletions = iota
	Kept
)

// PullReport says what a pull did.
type PullReport struct {
	Revision  providers.Revision // that names show now, of a store of whole revisions
	Changed   int                // names that lead to something new
	Deleted   int                // names that are gone
	Conflicts []string           // paths that were changed locally and on the remote
	Skipped   string             // why nothing was done; "": something was
	// TakenBack says that unpushed commits are changes again, on top of the pulled revision.
	TakenBack bool
}

// Add adds the report of the next pull.
func (r *PullReport) Add(next PullReport) {
	next.Changed += r.Changed
	next.Deleted += r.Deleted
	next.Conflicts = pending.Paths(r.Conflicts, next.Conflicts)
	next.TakenBack = next.TakenBack || r.TakenBack
	*r = next
}

// Options are the dependencies of a Follower and its Pusher.
type Options struct {
	Provider   providers.Provider
	Tree       *tree.Tree
	Head       HeadLock
	Shown      Rules // which names of a revision the table has
	Attributes attrs.Mapping
	// MergeCommits keeps unpushed commits beside those of others, as a parent of the next one;
	// else they are made anew on top of theirs.
	MergeCommits bool
	Combine      providers.Combine // texts that both sides changed, when commits are made anew
	Chores       *chores.Record
	Host         Host
	Names        Names
	Now          func() time.Time
}

// Follower keeps the table in step with the head. For a store that keeps no revisions it always
// is.
type Follower struct {
	o       Options
	store   Store
	isStore bool
	backlog *Backlog
}

// IsStore reports whether the remote keeps whole revisions.
func (f *Follower) IsStore() bool { return f.isStore }

// NewFollower makes a Follower. Commits that it takes back stay in the backlog.
func NewFollower(o Options, b *Backlog) *Follower {
	f := &Follower{o: o, backlog: b}
	f.store, f.isStore = StoreOf(o.Provider)
	return f
}

// recorded reads a record about revisions from the table.
func (f *Follower) recorded(get func(Reader) providers.Revision) providers.Revision {
	v := f.o.Tree.Lock()
	defer f.o.Tree.Unlock()
	return get(v)
}

// record changes a record about revisions in the table.
func (f *Follower) record(set func(Writer, providers.Revision), r providers.Revision) error {
	return f.o.Host.Update(func(tx *tree.Tx) error { set(tx, r); return nil })
}

// Synced is the revision that the table has; "" when that is not known.
func (f *Follower) Synced() providers.Revision {
	return f.recorded(func(v Reader) providers.Revision { return Synced(v, f.o.Shown) })
}

// IsSynced reports whether the names of the remote that the table has are those of the head.
func (f *Follower) IsSynced(ctx context.Context, _ Held) (bool, error) {
	if !f.isStore {
		return true, nil
	}
	head, err := f.store.Head(ctx)
	return err == nil && head == f.Synced(), err
}

// Sync brings the table up to date with the head.
func (f *Follower) Sync(ctx context.Context, head Moving) error {
	return f.o.Host.Patiently(ctx, func(w Waiting) error {
		_, err := f.sync(w, head)
		return err
	})
}

// sync is Sync after an advance that did not end, or a crash between the change of the store and
// that of the table.
func (f *Follower) sync(w Waiting, head Moving) (r PullReport, err error) {
	if err := f.endRewind(w, head); err != nil {
		return r, err
	}
	if is, err := f.IsSynced(w, head.Held); err != nil || is {
		return r, err
	}
	to, err := f.store.Head(w)
	if err != nil {
		return r, err
	}
	c, err := f.compare(w, f.o.Provider, f.Synced(), to)
	if err != nil {
		return r, err
	}
	defer c.End()
	return c.Apply(head.Held, to, Gone)
}

// maxTries is how often in a row a step is tried that others overtake.
const maxTries = 4

var errMoving = errors.New("the head keeps moving")

// Hold holds the head where it is, with a table that is in step with it.
func (f *Follower) Hold(ctx context.Context) (Held, error) {
	if !f.isStore {
		return NoHead(), providers.ErrUnsupported
	}
	for range maxTries {
		head, err := f.o.Head.Hold(ctx)
		if err != nil {
			return head, err
		}
		is, err := f.IsSynced(ctx, head)
		if err == nil && is {
			return head, nil
		}
		head.Release()
		if err == nil {
			err = f.resync(ctx)
		}
		if err != nil {
			return NoHead(), err
		}
	}
	return NoHead(), errMoving
}

func (f *Follower) resync(ctx context.Context) error {
	head := f.o.Head.Move()
	defer head.Release()
	if err := f.o.Host.Resolve(ctx, head); err != nil {
		return err
	}
	return f.Sync(ctx, head)
}

// compare finds the differences between the names that the table has, which are those of the
// revision from, and a revision that p shows: at the places where the two differ, or if from is
// not known ("") or was thrown away, by listing all known directories.
func (f *Follower) compare(w Waiting, p providers.Provider, from, to providers.Revision) (Comparison, error) {
	if from == "" || to == "" {
		return f.o.Names.CompareAll(w, p)
	}
	diffs, err := f.Differences(w, from, to)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		return f.o.Names.CompareAll(w, p)
	case err != nil:
		return nil, fmt.Errorf("differences: %w", err)
	}
	return f.o.Names.Compare(w, p, diffs)
}

// Differences are the places where two revisions differ, parents first; "" has no entries.
func (f *Follower) Differences(w Waiting, from, to providers.Revision) (diffs []providers.Difference, err error) {
	if from == "" {
		return f.store.entries(w, to)
	}
	err = f.o.Host.Retry(w, func(ctx context.Context) (err error) {
		diffs, err = f.store.Differences(ctx, from, to)
		return err
	})
	return diffs, err
}
