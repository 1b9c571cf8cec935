package cache

import (
	"encoding/binary"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// crosses reports whether giving n the name to, in place of from, would change on which
// side of the border to what stays on this machine it is.
func (v *Tx) crosses(from, to table.Link, n *table.Inode) bool {
	if !v.sendable(n) || v.o.Exclude == nil && !v.ignoring() {
		return false
	}
	return v.stays(from, n) != v.stays(to, n)
}

// crossesBelow is crosses for a directory and all that is known in it: a rule may name a
// path below. It looks only as far as a rule reaches, not through a million names.
func (v *View) crossesBelow(from, to table.Link, dir table.Ino) bool {
	if v.o.Exclude == nil {
		return false
	}
	was, ok := v.LocalPath(from)
	is, ok2 := v.LocalPath(to)
	return ok && ok2 && v.crossing(was, is, dir)
}

func (v *View) crossing(was, is providers.Locator, ino table.Ino) bool {
	n := v.table.Inode(ino)
	if n == nil {
		return false
	}
	out := v.o.Exclude.Match(was.String(), n.IsDir())
	if out != v.o.Exclude.Match(is.String(), n.IsDir()) {
		return true
	}
	if !n.IsDir() || out || v.o.Exclude.SameBelow(was.String(), is.String()) {
		return false // all below an excluded directory is excluded
	}
	found := false
	v.table.Names(ino, "", func(name string, rec table.Name) bool {
		below, err := was.Child(name)
		target, err2 := is.Child(name)
		found = rec.Ino != 0 && err == nil && err2 == nil && v.crossing(below, target, rec.Ino)
		return !found
	})
	return found
}

// excluded reports whether what the backend has at a path is not shown.
func (v *Volume) excluded(at providers.Locator, kind providers.Kind) bool {
	return v.o.Exclude != nil && v.o.Exclude.Match(at.String(), kind == providers.KindDir)
}

const hiddenKey = "hidden/"

// setHidden remembers how many entries of the backend a directory does not show.
func (v *Tx) setHidden(dir table.Ino, count int) {
	key := table.KeyOf(hiddenKey, dir)
	switch old := v.table.Get(key); {
	case count == 0 && old != nil:
		v.table.Set(key, nil)
	case count > 0:
		v.table.Set(key, binary.AppendUvarint(nil, uint64(count)))
	}
}

// hiding are the directories of which not all is shown.
func (v *Volume) hiding() (dirs []table.Ino) {
	locked := v.lock()
	defer locked.unlock()
	return table.InosOf(locked, hiddenKey)
}

// hidden counts the entries of the backend that are not shown, because their names are
// excluded or taken by what stays on this machine, in the directories that are known.
func (v *View) hidden() int {
	total := uint64(0)
	v.table.Scan(hiddenKey, "", func(_ string, value []byte) bool {
		n, _ := binary.Uvarint(value)
		total += n
		return true
	})
	return int(total)
}
