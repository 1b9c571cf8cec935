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
