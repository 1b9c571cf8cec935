package cache

import (
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// snapshot is a working copy as it was at one moment: its names, what programs were
// writing then, what was held back, and the rules that had been learned. What only
// reads the table works on it as on the volume itself, but without the lock, and
// one goroutine at a time. So what takes long is found out about a state in which
// everything fits together, and no one waits for it. Nothing can be changed in it:
// the table refuses.
type snapshot struct {
	*View
	at   *tree.Snapshot
	of   *Volume
	next uint64 // number of what comes later

	writing map[table.Ino]struct{}  // content that is left alone because programs were writing it
	loose   map[table.Ino]struct{}  // what is written and goes all the same; of a set
	held    map[table.Link]struct{} // names that were under way, resting or held back
	because map[table.Link]struct{} // names that are due although they differ only since
	cleared uint64                  // deletions up to here were confirmed
	planner *upload.Planner         // to which nothing is under way
	border  *rules.Border
}

// isWriting reports whether content was left alone because a program was writing it.
func (f *snapshot) isWriting(rec table.Name) bool {
	return pending.IsBeingWritten(f.View.View, rec, func(_ *tree.View, ino table.Ino, _ *table.Inode) bool {
		_, writing := f.writing[ino]
		return writing
	})
}

// takeSnapshot is the volume at this moment. Who has it calls end, soon. forSet has
// content stay as it is for a set, until kept.End.
func (v *Volume) takeSnapshot(forSet bool) *snapshot {
	locked := v.lock()
	defer locked.unlock()
	f := &snapshot{of: v, border: v.border.Snapshot(), at: locked.Snapshot(), next: locked.table.NextSeq(), writing: locked.beingWritten(),
		held: map[table.Link]struct{}{}, because: v.pending.Because(locked.View), cleared: v.deletions.cleared, planner: upload.NewPlanner(upload.Options{Capabilities: v.caps})}
	f.planner.Begin(f.at.View, false)
	if forSet {
		f.loose = v.kept.Begin(locked.View)
	}
	for t := range v.send.Jobs().All(locked.View) {
		if t.State != upload.Idle {
			f.held[t.Link] = struct{}{}
		}
	}
	then := &Volume{p: v.p, caps: v.caps, o: v.o, sets: v.sets}
	f.View = &View{Volume: then, guardedState: &guardedState{View: f.at.View, table: f.at.Reader, open: files.NewOpenSet(), massDelete: locked.massDelete}}
	return f
}

// beingWritten is content that is left alone because programs are writing it.
func (v *View) beingWritten() map[table.Ino]struct{} {
	all := map[table.Ino]struct{}{}
	for _, ino := range v.open.Inos(v.View) {
		if n := v.table.Inode(ino); n != nil && v.pending.IsOpen(v.View, ino, n) {
			all[ino] = struct{}{}
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
