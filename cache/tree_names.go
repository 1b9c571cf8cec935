package cache

import "github.com/wsmount/wsmount/cache/internal/table"

// Marked implements tree.Observer.
func (v *Tx) Marked(l table.Link, was, now uint64) {
	if l.Name == v.o.IgnoreFile {
		v.rulesMoved(l, now != 0)
	}
	v.wakes = v.wakes || v.pending.Marked(was, now)
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
