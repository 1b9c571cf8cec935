// Package rules knows which names of a working copy stay on this machine because an ignore file
// says so.
//
// Those are names that the remote does not have. Names that it has are still sent, whatever a rule
// says: only the remote's having a name makes it tracked. So whether a name is ignored depends on
// the remote's names, and on files that anyone may change or that are not local yet. Therefore
//
//   - a new name stays local at once if the learned rules say so, so that build output never gets
//     into the order of changes;
//   - before a commit the rules are learned anew ([Ignores.Unlearned]), names that stay for
//     earlier rules are looked at again ([ToLookBelow]), and those that would be sent are asked
//     for one by one: nothing depends on the rules learned before.
//
// An Ignores is guarded by the lock of the tree: each call has a view of it.
package rules

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/ignore"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// View is the tree, as a tree.View is.
type View interface {
	Inode(ino table.Ino) *table.Inode
	Record(l table.Link) table.Name
	Above(l table.Link) (dirs []table.Ino, names []string, ok bool)
	Dirty(after uint64, visit func(seq uint64, l table.Link) bool)
	Scan(prefix, after string, visit func(key string, value []byte) bool)
	Get(key string) []byte
}

// Tx is a change of it.
type Tx interface {
	View
	Set(key string, value []byte)
}

// Ignores are the learned rules, by the directory that their file is in.
type Ignores struct {
	file    string // the name of ignore files
	learned map[table.Ino]Rules
	absent  map[table.Ino]struct{} // directories without an ignore file: most, and not to be asked each time
	wanted  map[table.Ino]struct{} // directories whose rules could have been used
}

// Rules are the rules of one content version of an ignore file; without an Ino there is none.
type Rules struct {
	Ino     table.Ino
	Version uint64
	*ignore.Rules
}

const maxAbsent = 1 << 16

// New has learned no rules of the ignore files of a name.
func New(file string) *Ignores {
	return &Ignores{file: file, learned: map[table.Ino]Rules{}, absent: map[table.Ino]struct{}{}, wanted: map[table.Ino]struct{}{table.Root: {}}}
}

// Clone is a copy of the learned rules, for a snapshot of the tree.
func (g *Ignores) Clone() *Ignores {
	return &Ignores{file: g.file, learned: maps.Clone(g.learned), absent: map[table.Ino]struct{}{}, wanted: map[table.Ino]struct{}{}}
}

// FileOf is the ignore file of a directory; 0: there is none. known is false where the
// directory was never listed. A link is none: git does not follow it.
func (g *Ignores) FileOf(v View, dir table.Ino) (ino table.Ino, version uint64, known bool) {
	_, absent := g.absent[dir]
	var rec table.Name
	if !absent {
		rec = v.Record(table.Link{Dir: dir, Name: g.file})
	}
	if rec.Ino == 0 {
		if len(g.absent) > maxAbsent {
			clear(g.absent)
		}
		g.absent[dir] = struct{}{}
		d := v.Inode(dir)
		return 0, 0, d == nil || d.Loaded
	}
	if n := v.Inode(rec.Ino); n != nil && n.IsRegular() {
		return rec.Ino, n.ContentVersion, true
	}
	return 0, 0, true
}

// IsLearned reports whether the learned rules of a directory are the present ones.
func (g *Ignores) IsLearned(v View, dir table.Ino) bool {
	ino, version, known := g.FileOf(v, dir)
	r := g.learned[dir]
	return known && r.Ino == ino && r.Version == version
}

// Ignored reports whether the learned rules say that a name is not to be tracked. sure is false
// when rules that count were not learned.
func (g *Ignores) Ignored(v View, l table.Link, dir bool) (is, sure bool) {
	dirs, names, ok := v.Above(l)
	if !ok {
		return false, true
	}
	sure = true
	is = ignore.Covers(names, dir, func(n int) *ignore.Rules {
		sure = sure && g.IsLearned(v, dirs[n])
		return g.learned[dirs[n]].Rules
	})
	return is, sure
}

// Same reports whether rules are known to say the same of all names below a directory under two
// names. The rules in it go along with it.
func (g *Ignores) Same(v View, a, b table.Link) bool {
	dirsA, namesA, ok := v.Above(a)
	dirsB, namesB, ok2 := v.Above(b)
	if !ok || !ok2 {
		return false
	}
	isA, sureA := g.Ignored(v, a, true)
	isB, sureB := g.Ignored(v, b, true)
	if !sureA || !sureB || isA != isB {
		return false
	}
	for n := range max(len(dirsA), len(dirsB)) {
		switch {
		case n < len(dirsA) && n < len(dirsB) && dirsA[n] == dirsB[n]:
			if !g.learned[dirsA[n]].Same(strings.Join(namesA[n:], "/"), strings.Join(namesB[n:], "/")) {
				return false
			}
		case n < len(dirsA) && !g.learned[dirsA[n]].Empty(), n < len(dirsB) && !g.learned[dirsB[n]].Empty():
			return false
		}
	}
	return true
}

// Changed says that the ignore file of a directory came, went or has other content.
func (g *Ignores) Changed(dir table.Ino) { delete(g.absent, dir) }

// Undone says that a transaction was undone, with all that was seen in it.
func (g *Ignores) Undone() { clear(g.absent) }

// Want adds the rules that count for a name to those that Wanted returns: more names may be made
// next to it.
func (g *Ignores) Want(v View, l table.Link) {
	dirs, _, _ := v.Above(l)
	for _, dir := range dirs {
		g.wanted[dir] = struct{}{}
	}
}

// Wanted are the directories whose rules were wanted since the last call and were not
// learned.
func (g *Ignores) Wanted(v View) (dirs []table.Ino) {
	for dir := range g.wanted {
		if !g.IsLearned(v, dir) {
			dirs = append(dirs, dir)
		}
	}
	clear(g.wanted)
	return dirs
}

// The records in the table, since names stay local because of them.
const (
	rulesKey = "ignore/rules/" // of a directory the ignore file whose rules were learned
	lookKey  = "ignore/look/"  // a directory with all names below it to be looked at again
)

// state is the record of an ignore file whose rules were learned.
func state(ino table.Ino, version uint64) []byte {
	if ino == 0 {
		return nil
	}
	return binary.AppendUvarint(binary.AppendUvarint(nil, ino), version)
}

// Unlearned are the directories whose rules count for names that are to be sent and were not
// learned: the root, those that had some, and all above names that are dirty and not at the
// remote.
func (g *Ignores) Unlearned(v View) (dirs []table.Ino) {
	asked := map[table.Ino]struct{}{}
	v.Scan(rulesKey, "", func(key string, value []byte) bool {
		dir := table.InoOf(rulesKey, key)
		if ino, version, known := g.FileOf(v, dir); !known || !g.IsLearned(v, dir) || !bytes.Equal(value, state(ino, version)) {
			dirs = append(dirs, dir)
		}
		asked[dir] = struct{}{}
		return true
	})
	if _, known := asked[table.Root]; !known && !g.IsLearned(v, table.Root) {
		dirs = append(dirs, table.Root)
	}
	clear(asked)
	v.Dirty(0, func(_ uint64, l table.Link) bool {
		if rec := v.Record(l); rec.Remote == nil && rec.Ino != 0 {
			dirs = append(dirs, g.UnlearnedAbove(v, l, asked)...)
		}
		return true
	})
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// UnlearnedAbove are the directories above a name whose rules were not learned, and that are not
// in asked, to which they are added.
func (g *Ignores) UnlearnedAbove(v View, l table.Link, asked map[table.Ino]struct{}) (dirs []table.Ino) {
	above, _, _ := v.Above(l)
	for _, dir := range slices.Backward(above) {
		if _, known := asked[dir]; known {
			break
		}
		if asked[dir] = struct{}{}; !g.IsLearned(v, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Learn has the rules of a directory count. Where others did, or where they take back rules from
// above, names may stay local without need: those are to be looked at. A slow reader does not take
// back the rules of the file as it is.
func (g *Ignores) Learn(tx Tx, dir table.Ino, r Rules) {
	if ino, version, _ := g.FileOf(tx, dir); (ino != r.Ino || version != r.Version) && g.IsLearned(tx, dir) {
		return
	}
	key := table.KeyOf(rulesKey, dir)
	old, now := tx.Get(key), []byte(nil)
	if tx.Inode(dir) != nil {
		now = state(r.Ino, r.Version)
	}
	if old != nil && !bytes.Equal(old, now) || old == nil && r.Keeps() {
		LookBelow(tx, dir)
	}
	if !bytes.Equal(old, now) {
		tx.Set(key, now)
	}
	if now == nil {
		delete(g.learned, dir)
		return
	}
	g.learned[dir] = r
}

// LookBelow has the names below a directory looked at again before the next commit, also in the
// next run.
func LookBelow(tx Tx, dir table.Ino) { tx.Set(table.KeyOf(lookKey, dir), []byte{1}) }

// ToLookBelow are the directories of LookBelow that were not Looked below since.
func ToLookBelow(v View) []table.Ino { return table.InosOf(v, lookKey) }

// Looked says that the names below a directory were looked at.
func Looked(tx Tx, dir table.Ino) { tx.Set(table.KeyOf(lookKey, dir), nil) }

// Carriers are the directories that a directory of the remote was moved into, and that the remote
// does not have yet. It can have that one there only if it has them too, so these go although they
// are ignored; other names in them stay.
type Carriers map[table.Ino]struct{}

// Has reports whether a directory is one.
func (c Carriers) Has(dir table.Ino) bool {
	_, is := c[dir]
	return is
}

// CarriersOf finds them, and the names of those that stay local by now.
func CarriersOf(v View) (c Carriers, stay []table.Link) {
	c = Carriers{}
	v.Dirty(0, func(_ uint64, l table.Link) bool {
		rec := v.Record(l)
		n := v.Inode(rec.Ino)
		if rec.Remote != nil || rec.Local || n == nil || !n.IsDir() || len(n.RemoteLinks) == 0 {
			return true
		}
		for l.Dir != table.Root && !c.Has(l.Dir) {
			above := v.Inode(l.Dir)
			if above == nil || len(above.Links) == 0 {
				break
			}
			c[l.Dir] = struct{}{}
			l = above.Links[0]
			if v.Record(l).Local {
				stay = append(stay, l)
			}
		}
		return true
	})
	return c, stay
}
