package cache

import "github.com/wsmount/wsmount/cache/internal/table"

// Marked implements tree.Observer.
func (v *Tx) Marked(l table.Link, was, now uint64) {
	if l.Name == v.o.IgnoreFile {
		v.rulesMoved(l, now != 0)
	}
	switch {
	case now == 0: // it was on its way
		v.wakes = v.wakes || was != 0
	case was == 0: // not due yet: see engine.open
		v.wakes = v.wakes || v.engine.hurried(v.View)
	default: // another state of what was on its way
		v.wakes = v.wakes || was <= v.engine.due || v.engine.hurried(v.View)
	}
}

// setLocal gives a name an inode, or none (0), for a request of the kernel.
func (v *Tx) setLocal(l table.Link, ino table.Ino, stays bool) {
	hidden := false // excluded since it was taken from the remote, which keeps it
	if b := v.Record(l).Remote; b != nil && v.o.Exclude != nil {
		at, ok := v.RemotePath(l)
		hidden = ok && v.excluded(at, b.Kind)
	}
	v.SetLocal(l, ino, stays, hidden)
}

// setRemote says what the backend is now known to have under a name; nil: nothing.
// Listings that began before are told not to believe what they have of it.
func (v *Tx) setRemote(l table.Link, base *table.Remote) {
	rec, _ := v.table.Name(l.Dir, l.Name)
	rec.Remote, rec.Attempt = base, nil
	v.table.SetName(l.Dir, l.Name, rec)
	v.ChangedByUs(l)
	v.Mark(l)
	v.vacated(l)
}

// vacated lets a directory go that was removed here, once nothing is open about a name
// in it.
func (v *Tx) vacated(l table.Link) {
	if _, there := v.table.Name(l.Dir, l.Name); !there {
		v.shed(l.Dir)
	}
}
