package cache

import (
	"maps"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// snapshot is a working copy as it was at one moment: its names, what programs were
// writing then, what was held back, and the rules that had been learned. What only
// reads the table works on it as on the volume itself, but without the lock, and
// one goroutine at a time. So what takes long is found out about a state in which
// everything fits together, and nobody waits for it. Nothing can be changed in it:
// the table refuses.
type snapshot struct {
	*View
	at    *tree.Snapshot
	of    *Volume
	loose map[table.Ino]struct{} // what is written and goes all the same; of a set
	next  uint64                 // number of what comes later
}

// takeSnapshot is the volume at this moment. Who has it calls end, soon. forSet has
// content stay as it is for a set, until endKeeping.
func (v *Volume) takeSnapshot(forSet bool) *snapshot {
	locked := v.lock()
	defer locked.unlock()
	loose := map[table.Ino]struct{}(nil)
	if forSet {
		loose = locked.beginKeeping()
	}
	at := locked.Snapshot()
	f := &snapshot{at: at, loose: loose, of: v, next: locked.table.NextSeq()}
	then := &Volume{p: v.p, caps: v.caps, o: v.o}
	f.View = &View{Volume: then, guardedState: &guardedState{View: at.View, table: at.Reader, open: locked.beingOpen(), massDelete: locked.massDelete, ignores: locked.ignores.Clone()}}
	e := &then.engine
	e.v, e.sets, e.memo = then, v.engine.sets, newMemo()
	e.because, e.found = maps.Clone(v.engine.because), maps.Clone(v.engine.found)
	e.jobs = map[table.Link]*job{}
	for l, t := range v.engine.jobs {
		e.jobs[l] = &job{link: l, state: t.state}
	}
	return f
}

// beingOpen are the inodes that programs are writing, as the engine of a frozen volume
// finds them.
func (v *View) beingOpen() map[table.Ino]*openInode {
	all := map[table.Ino]*openInode{}
	for ino, oi := range v.open {
		if n := v.table.Inode(ino); oi.writers > 0 && n != nil && v.engine.isOpen(v, ino, n) {
			all[ino] = &openInode{writers: 1}
		}
	}
	return all
}

// end gives the snapshot back.
func (f *snapshot) end() {
	if err := f.at.Close(f.of.tree); err != nil {
		f.o.Log.Error("a snapshot of the table was not given back", "err", err)
	}
}
