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
	held  View // given to the holder of mu
}

// Options are a tree's settings and dependencies.
type Options struct {
	Now        func() time.Time // nil: time.Now
	Attributes bool             // the remote keeps attributes of an inode
	Pins       Pins             // nil: only the kernel uses inodes
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

// A View reads the tree until its lock is given back, or a snapshot of it. The lock's state
// in memory alone is changed through it, too. All holders of the lock get the same View.
type View struct {
	table.Reader
	guarded *guarded
}

// readOnly hides the other methods of a table from the users of a View.
type readOnly struct{ table.Reader }

// guarded is the state that the lock guards beside the table. None of it survives the process.
type guarded struct {
	options       Options
	lookups       map[table.Ino]uint64      // references of the kernel
	pages         map[table.Ino]uint64      // the content version that the kernel has pages of
	outdated      map[table.Ino]struct{}    // the kernel may have attributes of another version
	staleDentries map[table.Link]struct{}   // see MarkStaleDentry
	observations  map[*Observation]struct{} // that are under way
}

// writer is embedded under a name of this package's: writing a name past Tx.SetName would
// leave out the bookkeeping that goes with it.
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

// now is the present time, as inodes keep it.
func (v *View) now() table.Time { return table.TimeOf(v.guarded.options.Now()) }

// Later has f run without the lock, once the transaction is committed.
func (t *Tx) Later(f func()) { t.after = append(t.after, f) }

// Wrote reports whether the transaction that was committed had anything to commit.
func (t *Tx) Wrote() bool { return t.wrote }

// An Observer follows a transaction to its end, under the lock.
type Observer interface {
	// Full says that the disk has no room for the transaction. Full makes some, the
	// second time at a higher price, by other means than Update, and reports whether the
	// commit is worth another attempt. It may change the table in the transaction.
	Full(again bool) bool
	// Marked says that a name, or the inode behind it, has changed, and the place of the
	// name in the order of dirty names before that and now; 0: its two sides agree.
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

// Unlock gives the lock back.
func (t *Tree) Unlock() { t.mu.Unlock() }

// View runs do under the lock. It fails as do does, or because the table has failed: in
// such a table a record that is not found may exist.
func (t *Tree) View(do func(*View) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause(do(&t.held))
}

func (t *Tree) log() *slog.Logger { return t.held.guarded.options.Log }

// Sync brings every committed transaction to the disk. It needs no lock.
func (t *Tree) Sync() error { return t.table.Sync() }

// Update runs do as one atomic change. The functions that do gave to Later run after it,
// without the lock. When do or the commit fails, or do panics, nothing has changed; a panic
// gives the lock back too. o may be nil.
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

// commit commits the transaction, as long as the observer finds room for it.
func (t *Tree) commit(o Observer) error {
	err := t.table.Commit()
	for _, again := range []bool{false, true} {
		if errors.Is(err, table.ErrFull) && o.Full(again) {
			err = t.table.Commit()
		}
	}
	return err
}

// cause is the reason of a failure: an error of the table itself comes first.
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
