package ops

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

// Lookup implements fs.Volume. The first lookup in a directory lists it.
func (v *Operations) Lookup(op *fs.Op, dir fs.Ino, name string) (fs.Entry, error) {
	if err := tree.CheckName(name); err != nil {
		return fs.Entry{}, err
	}
	d := table.Ino(dir)
	if err := v.o.Remote.Load(op, d); err != nil {
		return fs.Entry{}, err
	}
	var e fs.Entry
	err := v.view(func(v view) error {
		v.ClearStaleDentry(table.Link{Dir: d, Name: name})
		if rec, _ := v.Name(d, name); rec.Ino != 0 {
			e = v.refer(d, rec.Ino)
		} else {
			e.TTL = v.o.Belief.KernelTTL(d, v.Inode(d))
		}
		return nil
	})
	return v.unrefer(e, err)
}
