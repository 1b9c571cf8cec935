package cache

import (
	"maps"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// deferredUnlinks is content that nothing leads to any more. It goes, into the history
// or away, when the disk has the table that says so, and not before: a loss of
// power takes what the table was told since its last sync, and leaves what was
// done to content since, so that a name would come back without the bytes that
// were synced under it. Nobody waits for that: one sync is for all that comes
// within partAfter.
type deferredUnlinks struct {
	turn sync.Mutex // held while content goes; outside the volume's lock

	mu   sync.Mutex // inside the volume's lock; guards all
	all  map[table.Ino]deferredUnlink
	kick chan struct{}
}

// deferredUnlink is the content of one inode.
type deferredUnlink struct {
	kept uint64 // as what it goes into the history; 0: it does not
	size int64  // that the disk gets back if not
}

// unlinkAfter is how long content that is to go waits for more.
const unlinkAfter = time.Second

func (p *deferredUnlinks) init() {
	p.all, p.kick = map[table.Ino]deferredUnlink{}, make(chan struct{}, 1)
}

// add has content go that a change, which was committed, let go.
func (p *deferredUnlinks) add(ino table.Ino, one deferredUnlink) {
	p.mu.Lock()
	p.all[ino] = one
	p.mu.Unlock()
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// has reports whether content of an inode has still to go.
func (p *deferredUnlinks) has(ino table.Ino) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.all[ino]
	return ok
}

// unlinkLoop has content go.
func (v *Volume) unlinkLoop() {
	for {
		select {
		case <-v.ctx.Done():
			return // Close does the rest
		case <-v.unlinks.kick:
		}
		if v.pause(v.ctx, unlinkAfter) != nil {
			return
		}
		v.unlinkDue()
	}
}

// unlinkDue has all content go that is to go by now, and says how many bytes the
// disk got back. When the table cannot be synced everything stays, for the next
// start.
func (v *Volume) unlinkDue() (freed int64) {
	p := &v.unlinks
	p.turn.Lock()
	defer p.turn.Unlock()
	p.mu.Lock()
	all := maps.Clone(p.all)
	p.mu.Unlock()
	if len(all) == 0 || v.tree.Sync() != nil {
		return 0
	}
	for ino, one := range all {
		v.unlinkOne(ino, one)
		if one.kept == 0 {
			freed += one.size
		}
		p.mu.Lock()
		delete(p.all, ino)
		p.mu.Unlock()
	}
	return freed
}

// unlinkOne has the content of one inode go.
func (v *Volume) unlinkOne(ino table.Ino, one deferredUnlink) {
	locked := v.lock()
	n := locked.table.Inode(ino)
	other := n != nil && n.State != table.None // it has content again
	kept := one.kept != 0 && locked.table.Get(history.KeptKey(one.kept)) != nil
	locked.unlock()
	switch {
	case other:
	case kept:
		v.moveAway(ino, one.kept)
	default:
		v.store.Remove(ino)
		v.history.noteMoved(ino)
	}
}
