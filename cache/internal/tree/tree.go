package tree

import (
	"cmp"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// Tree is a table of inodes and names with its lock.
type Tree struct {
	mu    sync.Mutex
	table *table.Table
	held  View // given to whoever holds mu
}

// Options are what a tree needs of those who use it.
type Options struct {
	Now        func() time.Time // nil: time.Now
	Attributes bool             // the remote keeps attributes of an inode
	Pins       Pins             // nil: no one but the kernel uses inodes
	Log        *slog.Logger     // nil: slog.Default
}

// New is the tree in t, which stays the caller's to close.
func New(t *table.Table, o Options) *Tree {
	if o.Pins == nil {
		o.Pins = unpinned{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tree{table: t, held: View{readOnly{t}, &guarded{
		options:       o,
		lookups:       map[table.Ino]uint64{},
		pages:         map[table.Ino]uint64{},
		outdated:      map[table.Ino]struct{}{},
		staleDentries: map[table.Link]struct{}{},
		observations:  map[*Observation]struct{}{},
	}}}
}

// A View reads the tree, until its lock is given back, or as it was in a snapshot. What of the
// lock's is in memory alone is changed through it, too. All who hold the lock get the same.
type View struct {
	table.Reader
	guarded *guarded
}

// readOnly hides what else a table can do from who has a View.
type readOnly struct{ table.Reader }

// guarded is what the lock guards beside the table. None of it survives the process.
type guarded struct {
	options       Options
	lookups       map[table.Ino]uint64      // references of the kernel
	pages         map[table.Ino]uint64      // the content version that the kernel has pages of
	outdated      map[table.Ino]struct{}    // the kernel may have attributes of another version
	staleDentries map[table.Link]struct{}   // see MarkStaleDentry
	observations  map[*Observation]struct{} // that are under way
}

// writer is embedded under a name of this package's: who writes a name past Tx.SetName leaves out
// what goes with it.
type writer = table.Writer

// A Tx changes the tree: all of it survives a kill when Update has returned, or nothing
// of it happened.
type Tx struct {
	*View
	writer

	observer Observer
	changed  []table.Link
	unnamed  []table.Ino
	wrote    bool
	after    []func()
}

// now is the time as an inode has it.
func (v *View) now() table.Time { return table.TimeOf(v.guarded.options.Now()) }

// Later has f run without the lock, once the transaction is committed.
func (t *Tx) Later(f func()) { t.after = append(t.after, f) }

// Wrote reports whether the transaction that was committed had anything to commit.
func (t *Tx) Wrote() bool { return t.wrote }

// An Observer follows a transaction to its end, which the lock is kept for.
type Observer interface {
	// Full says that the disk has no room for the transaction. Full makes some, the
	// second time at a higher price, by other means than Update, and reports whether the
	// commit is worth another attempt. It may change the table in the transaction.
	Full(again bool) bool
	// Marked says that a name, or what is behind it, has changed, and the place of the name
	// in the order of what differs before that and now; 0: its two sides agree.
	Marked(l table.Link, was, now uint64)
	Keeper
	Committed() // all of it is in the table
	Undone()    // nothing of it happened
}

// Lock waits for the lock. Unlock gives it back, and ends the View.
func (t *Tree) Lock() *View {
	t.mu.Lock()
	return &t.held
}

// Unlock ends what Lock began.
func (t *Tree) Unlock() { t.mu.Unlock() }

// View runs do under the lock. It fails as do does, or because the table has failed: what
// is not found in such a table is not known to be missing.
func (t *Tree) View(do func(*View) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause(do(&t.held))
}

func (t *Tree) log() *slog.Logger { return t.held.guarded.options.Log }

// Sync brings every committed transaction to the disk. It needs no lock.
func (t *Tree) Sync() error { return t.table.Sync() }

// Update runs do as one atomic change. What do gave to Later runs after it, without the
// lock. When do fails, or the commit, or do panics, nothing happened; a panic leaves the
// lock too. o may be nil.
func (t *Tree) Update(do func(*Tx) error, o Observer) error {
	if o == nil {
		o = unobserved{}
	}
	tx := &Tx{View: &t.held, writer: t.table, observer: o}
	if err := tx.run(t, do, o); err != nil {
		return err
	}
	for _, f := range tx.after {
		f()
	}
	return nil
}

func (tx *Tx) run(t *Tree, do func(*Tx) error, o Observer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	committed := false
	defer func() { // also when do panics: others wait for the lock
		if !committed {
			t.table.Abort()
			o.Undone()
		}
	}()
	err := do(tx)
	if err == nil {
		tx.settleSuspects()
		tx.wrote = t.table.Changed()
		err = t.commit(o)
	}
	if err != nil {
		return t.cause(err)
	}
	committed = true
	o.Committed()
	return nil
}

// commit commits what was changed, as long as the observer finds room for it.
func (t *Tree) commit(o Observer) error {
	err := t.table.Commit()
	for _, again := range []bool{false, true} {
		if errors.Is(err, table.ErrFull) && o.Full(again) {
			err = t.table.Commit()
		}
	}
	return err
}

// cause is why something went wrong: the table itself comes first.
func (t *Tree) cause(err error) error { return cmp.Or(t.table.Err(), err) }

type unobserved struct{}

func (unobserved) Full(bool) bool                        { return false }
func (unobserved) Marked(table.Link, uint64, uint64)     {}
func (unobserved) Nameless(table.Ino, *table.Inode) bool { return false }
func (unobserved) Freed(table.Ino, *table.Inode)         {}
func (unobserved) Committed()                            {}
func (unobserved) Undone()                               {}

type unpinned struct{}

func (unpinned) Pinned(*View, table.Ino) bool { return false }
