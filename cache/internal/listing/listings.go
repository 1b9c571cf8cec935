package listing

import (
	"context"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Options are the parts that Listings work with.
type Options struct {
	Tree         *tree.Tree
	Update       func(do func(*tree.Tx) error) error
	Provider     providers.Provider
	Capabilities providers.Capabilities
	Head         revision.HeadLock
	Belief       *Belief
	Merger       func() Merger
	Border       *rules.Border
	Attributes   attrs.Mapping
	SentBack     *files.SentBack
	Waits        *waiting.Waits
	Patience     time.Duration                     // how long a listing may stand still
	Wait         func(time.Duration) time.Duration // see Shared
	Room         Room
	Go           func(func())

	Rules revision.Rules // which names of a revision the tree has
	// IsClosing reports whether no listings go ahead any more, and Back is told that the remote
	// answers again.
	IsClosing func(*tree.View) bool
	Back      func(*tree.View)
	// StandsAside reports whether a name is hidden from programs although the remote has it.
	StandsAside func(v *tree.View, l table.Link, rec table.Name) bool
	// Halt stops pulls for a reason.
	Halt func(v *tree.View, reason string) error
}

// Merger brings listed entries into the tree.
type Merger interface {
	New(ctx context.Context, remote providers.Provider) *merge.Merge
	KeepKnownKind(rec table.Name, info *providers.Info)
	RevalidateOnce(ctx context.Context, head revision.Held, l table.Link, late bool) error
}

// Listings make the remote's names in directories known.
type Listings struct {
	*Ahead
	o      Options
	shared Shared
}

// New makes one that has listed nothing.
func New(o Options) *Listings {
	ls := &Listings{o: o, shared: Shared{Now: o.Belief.Now, Go: o.Go, Wait: o.Wait}}
	// Pages can cover directories where these are only key prefixes; but not those of a store of
	// whole revisions, which is listed as of one revision: a page could outlive that.
	_, whole := revision.StoreOf(o.Provider)
	ls.Ahead = NewAhead(AheadOptions{Tree: o.Tree, Belief: o.Belief, Lists: lister{ls}, Room: o.Room, Context: o.Waits.Context, Go: o.Go,
		CanCover: o.Capabilities.ImpliedDirs && o.Capabilities.RecursiveList && o.Capabilities.ListAfter && !whole})
	return ls
}

// lister lists directories ahead of a walk.
type lister struct{ of *Listings }

var _ Lister = lister{}

// List implements Lister.
func (l lister) List(ctx context.Context, at providers.Locator, o providers.ListOptions) (providers.Page, error) {
	return l.of.o.Provider.List(ctx, at, o)
}

// MayList implements Lister.
func (l lister) MayList(v *tree.View) bool { return !l.of.o.IsClosing(v) }

// Answered implements Lister.
func (l lister) Answered(v *tree.View, took time.Duration) { l.of.answered(v, took, nil) }

// Load makes sure that the names of a directory are known and can be believed. op nil: for the
// working copy itself, with all patience.
func (ls *Listings) Load(op *fs.Op, dir table.Ino) error { return ls.Look(op, dir, false) }
