package files

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/pins"
)

// Eviction chooses the content that may be evicted: the remote has it, and it is not in use.
type Eviction struct {
	Tree   *tree.Tree
	Store  Weighed
	Update func(do func(*tree.Tx) error) error // a transaction of Tree
	Open   *OpenSet
	Pins   *pins.Set // of paths whose content is not evicted
	// Lost gives a question, from the known state of a working copy: why can commits that are not
	// pushed not be read where the provider keeps them? Their local content may be the last copy
	// then, and nothing is evicted. nil, or a nil question: there are none. The question is asked
	// without the lock, but for GiveUpBeside; whole: can each byte of them be read, which takes
	// as long, and is always without.
	Lost func(v *tree.View) (ask func(whole bool) error)
	lost error // the last answer; guarded by the lock of Tree
}

// Weighed is the store of content, which evicts it.
type Weighed interface {
	// Clean says how much the content of an inode takes, and whether it may be evicted.
	Clean(ino uint64, size int64, clean bool)
	Each(visit func(ino uint64, path string, size int64, partial bool)) error
}

// IsReplaceable reports whether the content of an inode can be fetched again: the remote
// has exactly that content under every name of it.
func IsReplaceable(v *tree.View, n *table.Inode) bool {
	return n.IsRegular() && !n.Writing && !n.Suspect && len(n.Links) > 0 && !slices.ContainsFunc(n.Links, func(l table.Link) bool {
		rec := v.Record(l)
		return rec.Local || v.Differs(rec)
	})
}

func (e *Eviction) isReplaceable(v *tree.View, n *table.Inode) bool {
	return e.lost == nil && IsReplaceable(v, n)
}

// Recheck asks whether commits that are not pushed are lost, and whether the answer has
// changed: then WeighAll must tell the store. After a loss all bytes are checked.
func (e *Eviction) Recheck(whole bool) (changed bool) {
	if e.Lost == nil {
		return false
	}
	v := e.Tree.Lock()
	ask := e.Lost(v)
	whole = whole || e.lost != nil
	e.Tree.Unlock()
	var lost error
	if ask != nil {
		lost = ask(whole)
	}
	e.Tree.Lock()
	defer e.Tree.Unlock()
	changed = (e.lost == nil) != (lost == nil)
	e.lost = lost
	return changed
}

// Why is the last answer: nil where content may be evicted.
func (e *Eviction) Why() error {
	e.Tree.Lock()
	defer e.Tree.Unlock()
	return e.lost
}

// GiveUp notes that the content of an inode is not local any more, if it can be fetched
// again and is not in use. The table forgets it before the disk does, so that no crash
// leaves a record of content that is missing.
func (e *Eviction) GiveUp(t *tree.Tx, ino table.Ino) bool {
	n := t.Inode(ino)
	if n == nil || e.Open.IsOpen(t.View, ino) || !e.isReplaceable(t.View, n) || e.isPinned(t.View, n) {
		return false
	}
	if n.State != table.None {
		n = t.Edit(ino)
		n.State, n.Origin = table.None, table.Origin{}
	}
	return true
}

// MayEvict is GiveUp in a transaction of its own.
func (e *Eviction) MayEvict(ino table.Ino) (may bool) {
	if !e.IsReplaceable(ino) { // a pinned inode costs no transaction each time
		return false
	}
	err := e.Update(func(t *tree.Tx) error {
		may = e.GiveUp(t, ino)
		return nil
	})
	return err == nil && may
}

// GiveUpBeside is GiveUp within a transaction that may fail yet: the inodes that the
// transaction changes are not clean by the table on the disk. Lost commits are asked for
// within the transaction, for which there is no other moment, and never byte by byte: after
// a loss nothing is given up until Recheck, which needs no lock for it.
func (e *Eviction) GiveUpBeside(t *tree.Tx) (may func(ino table.Ino) bool) {
	changed := map[table.Ino]bool{}
	for _, l := range t.Changed() {
		changed[t.Record(l).Ino] = true
	}
	for _, ino := range t.Unnamed() { // if this transaction fails the name is back
		changed[ino] = true
	}
	if e.Lost != nil && e.lost == nil {
		if ask := e.Lost(t.View); ask != nil {
			e.lost = ask(false)
		}
	}
	return func(ino table.Ino) bool { return !changed[ino] && e.GiveUp(t, ino) }
}

// IsReplaceable reports whether the content of an inode may be evicted, since it can be
// fetched again and is not pinned. It writes nothing.
func (e *Eviction) IsReplaceable(ino table.Ino) bool {
	v := e.Tree.Lock()
	defer e.Tree.Unlock()
	n := v.Inode(ino)
	return n != nil && e.isReplaceable(v, n) && !e.isPinned(v, n)
}

// isPinned reports whether one of the names of an inode is at a pinned path.
func (e *Eviction) isPinned(v *tree.View, n *table.Inode) bool {
	return slices.ContainsFunc(n.Links, func(l table.Link) bool {
		at, ok := v.LocalPath(l)
		return ok && e.Pins.Holds(at.String())
	})
}

// Weigh tells the store how much space the content of an inode takes, and whether it may be
// evicted. It follows each change of either; while the inode is open it waits until the
// last close.
func (e *Eviction) Weigh(v *tree.View, ino table.Ino) {
	if e.Open.IsOpen(v, ino) {
		return
	}
	if n := v.Inode(ino); n != nil && n.State != table.None && n.IsRegular() {
		size := n.Blocks * 512
		if n.State == table.Partial { // its Blocks are those of the whole
			size = content.Measured
		}
		e.Store.Clean(ino, size, e.isReplaceable(v, n))
	}
}

// WeighChanged weighs the inodes that a committed transaction concerned.
func (e *Eviction) WeighChanged(t *tree.Tx) {
	for _, l := range t.Changed() {
		if x := t.Record(l).Ino; x != 0 {
			e.Weigh(t.View, x)
		}
	}
}

// WeighAll weighs content that was local before this run, until ctx ends.
func (e *Eviction) WeighAll(ctx context.Context) error {
	return e.Store.Each(func(ino uint64, _ string, _ int64, _ bool) {
		if ctx.Err() == nil {
			v := e.Tree.Lock()
			defer e.Tree.Unlock()
			e.Weigh(v, ino)
		}
	})
}
