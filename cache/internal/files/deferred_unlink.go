package files

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// DeferredUnlinks is content that is not reachable any more. It goes, into the history or
// away, when the disk has the table without it, and not before: a loss of power takes the
// table's changes since its last sync, and leaves later changes of content, so that a name
// would come back without the bytes that were synced under it. No caller waits for that:
// one sync is for all content that comes within unlinkAfter.
type DeferredUnlinks struct {
	o    UnlinkOptions
	kick chan struct{}
	turn sync.Mutex // held over the unlinks; outside the lock of the tree

	mu  sync.Mutex // inside the lock of the tree; guards all
	all map[table.Ino]DeferredUnlink
}

// UnlinkOptions are the dependencies of a DeferredUnlinks.
type UnlinkOptions struct {
	Tree    *tree.Tree
	Remove  func(ino table.Ino) // takes content from the disk
	History Archive
}

// Archive is the history, where content goes that it keeps.
type Archive interface {
	// IsKept reports whether the history still wants content under a number.
	IsKept(v *tree.View, id uint64) bool
	// Keep moves the content of an inode into the history.
	Keep(ino table.Ino, id uint64)
	// Removed says that the content of an inode is gone instead.
	Removed(ino table.Ino)
}

// DeferredUnlink is the content of one inode.
type DeferredUnlink struct {
	Kept uint64 // the number under which it goes into the history; 0: it does not
	Size int64  // that the disk gets back if not
}

// unlinkAfter is how long an unlink waits for more of them.
const unlinkAfter = time.Second

// NewDeferredUnlinks makes an empty one.
func NewDeferredUnlinks(o UnlinkOptions) *DeferredUnlinks {
	return &DeferredUnlinks{o: o, all: map[table.Ino]DeferredUnlink{}, kick: make(chan struct{}, 1)}
}

// Add schedules the unlink of content that a committed change let go.
func (d *DeferredUnlinks) Add(ino table.Ino, one DeferredUnlink) {
	d.mu.Lock()
	d.all[ino] = one
	d.mu.Unlock()
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// Has reports whether the content of an inode waits for its unlink.
func (d *DeferredUnlinks) Has(ino table.Ino) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.all[ino]
	return ok
}

// Loop runs unlinks until ctx ends; pause waits. Content that is left then is for another Run.
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

// Run unlinks all content that was added so far, and gives the number of bytes that the
// disk got back. When the table cannot be synced everything stays, for the next start.
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

// unlink moves the content of one inode into the history, or removes it.
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
