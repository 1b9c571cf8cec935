package files

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// DeferredUnlinks is content that nothing leads to any more. It goes, into the history
// or away, when the disk has the table that says so, and not before: a loss of
// power takes what the table was told since its last sync, and leaves what was
// done to content since, so that a name would come back without the bytes that
// were synced under it. No caller waits for that: one sync is for all that comes
// within unlinkAfter.
type DeferredUnlinks struct {
	o    UnlinkOptions
	kick chan struct{}
	turn sync.Mutex // held while content goes; outside the lock of the tree

	mu  sync.Mutex // inside the lock of the tree; guards all
	all map[table.Ino]DeferredUnlink
}

// UnlinkOptions are what a DeferredUnlinks needs of those who use it.
type UnlinkOptions struct {
	Tree    *tree.Tree
	Remove  func(ino table.Ino) // takes content from the disk
	History Archive
}

// Archive is where content goes that the history keeps.
type Archive interface {
	// IsKept reports whether the history still wants content under a number.
	IsKept(v *tree.View, id uint64) bool
	// Keep moves the content of an inode there.
	Keep(ino table.Ino, id uint64)
	// Removed says that the content of an inode is gone instead.
	Removed(ino table.Ino)
}

// DeferredUnlink is the content of one inode.
type DeferredUnlink struct {
	Kept uint64 // the number under which it goes into the history; 0: it does not
	Size int64  // that the disk gets back if not
}

// unlinkAfter is how long content that is to go waits for more.
const unlinkAfter = time.Second

// NewDeferredUnlinks makes one of nothing.
func NewDeferredUnlinks(o UnlinkOptions) *DeferredUnlinks {
	return &DeferredUnlinks{o: o, all: map[table.Ino]DeferredUnlink{}, kick: make(chan struct{}, 1)}
}

// Add has content go that a change, which was committed, let go.
func (d *DeferredUnlinks) Add(ino table.Ino, one DeferredUnlink) {
	d.mu.Lock()
	d.all[ino] = one
	d.mu.Unlock()
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// Has reports whether content of an inode has still to go.
func (d *DeferredUnlinks) Has(ino table.Ino) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.all[ino]
	return ok
}

// Loop has content go until ctx ends; pause waits. What is left then is for another Run.
func (d *DeferredUnlinks) Loop(ctx context.Context, pause func(context.Context, time.Duration) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
		}
		if pause(ctx, unlinkAfter) != nil {
			return
		}
		d.Run()
	}
}

// Run has all content go that is to go by now, and says how many bytes the
// disk got back. When the table cannot be synced everything stays, for the next
// start.
func (d *DeferredUnlinks) Run() (freed int64) {
	d.turn.Lock()
	defer d.turn.Unlock()
	d.mu.Lock()
	all := maps.Clone(d.all)
	d.mu.Unlock()
	if len(all) == 0 || d.o.Tree.Sync() != nil {
		return 0
	}
	for ino, one := range all {
		d.unlink(ino, one)
		if one.Kept == 0 {
			freed += one.Size
		}
		d.mu.Lock()
		delete(d.all, ino)
		d.mu.Unlock()
	}
	return freed
}

// unlink has the content of one inode go.
func (d *DeferredUnlinks) unlink(ino table.Ino, one DeferredUnlink) {
	v := d.o.Tree.Lock()
	n := v.Inode(ino)
	other := n != nil && n.State != table.None // it has content again
	kept := one.Kept != 0 && d.o.History.IsKept(v, one.Kept)
	d.o.Tree.Unlock()
	switch {
	case other:
	case kept:
		d.o.History.Keep(ino, one.Kept)
	default:
		d.o.Remove(ino)
		d.o.History.Removed(ino)
	}
}
