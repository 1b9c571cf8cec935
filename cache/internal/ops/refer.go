package ops

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// refer is the kernel's entry for an inode, with a reference.
func (v view) refer(dir, ino table.Ino) fs.Entry {
	v.Refer(ino)
	return fs.Entry{Ino: fs.Ino(ino), Attr: v.attr(ino, v.Inode(ino)), TTL: v.o.Belief.KernelTTL(dir, v.Inode(dir))}
}

// unrefer takes back the reference of an entry that is not returned: the change that made it
// could not be committed.
func (v *Operations) unrefer(e fs.Entry, err error) (fs.Entry, error) {
	if err == nil {
		return e, nil
	}
	if e.Ino != 0 {
		locked := v.lock()
		locked.DropReferences(table.Ino(e.Ino), 1)
		locked.unlock()
	}
	return fs.Entry{}, err
}

// Forget implements fs.Volume.
func (v *Operations) Forget(ino fs.Ino, count uint64) {
	i := table.Ino(ino)
	locked := v.lock()
	gone := locked.DropReferences(i, count) && i != table.Root && locked.IsForsaken(i)
	locked.unlock()
	if gone {
		v.o.Abandon(i)
	}
}

// Path implements fs.Pather. An inode with several names has any one of them.
func (v *Operations) Path(ino fs.Ino) (string, bool) {
	locked := v.lock()
	defer locked.unlock()
	l, ok := locked.LocalPathOf(table.Ino(ino))
	return l.String(), ok
}
