package cache

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/ignore"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Ignore files say which names stay here although they are not excluded: those
// that the backend does not have. What it has goes on going there, whatever a
// rule says; that it has it is all that makes a name tracked. So whether a name
// is ignored depends on what is at the backend, and on files that anybody may
// change or that are not here yet. Therefore
//
//   - a new name stays here at once if the rules that are known say so, so that
//     what a build leaves behind never gets into the order of changes;
//   - before a commit the rules are learned anew (ignored_learn.go), names that
//     stay for rules of before are looked at again, and those that would be sent
//     are asked for one by one: nothing depends on what was known before.

// ignores are the rules that were read, by the directory that they are in. The volume's
// lock guards it.
type ignores struct {
	rules    map[table.Ino]rulesOf
	absent   map[table.Ino]struct{} // directories without an ignore file: most, and not to be asked each time
	wanted   map[table.Ino]struct{} // directories whose rules somebody could have used
	learning bool                   // in the background
	relook   bool                   // names may stay here for no reason any more
}

// rulesOf are rules, and of which state of which file.
type rulesOf struct {
	ino table.Ino // 0: there is none
	gen uint64
	*ignore.Rules
}

const maxAbsent = 1 << 16

// ignoring reports whether there are ignore files at all.
func (v *Volume) ignoring() bool { return v.o.IgnoreFile != "" && v.engine.sets != nil }

// ruleFile is the ignore file of a directory; 0: there is none. known is false where
// nobody has looked into the directory. A link is none: git does not follow it.
func (v *View) ruleFile(dir table.Ino) (ino table.Ino, gen uint64, known bool) {
	_, absent := v.ignores.absent[dir]
	var rec table.Name
	if !absent {
		rec, _ = v.table.Name(dir, v.o.IgnoreFile)
	}
	if rec.Ino == 0 {
		if len(v.ignores.absent) > maxAbsent {
			clear(v.ignores.absent)
		}
		v.ignores.absent[dir] = struct{}{}
		d := v.table.Inode(dir)
		return 0, 0, d == nil || d.Loaded
	}
	if n := v.table.Inode(rec.Ino); n != nil && isRegular(n) {
		return rec.Ino, n.ContentVersion, true
	}
	return 0, 0, true
}

// learned reports whether the rules of a directory are those of now.
func (v *View) learned(dir table.Ino) bool {
	ino, gen, known := v.ruleFile(dir)
	r := v.ignores.rules[dir]
	return known && r.ino == ino && r.gen == gen
}

// above are the directories from the root to that of a name, and the names that lead to
// it.
func (v *View) above(l table.Link) (dirs []table.Ino, names []string, ok bool) {
	for {
		dirs, names = append(dirs, l.Dir), append(names, l.Name)
		if l.Dir == table.Root {
			break
		}
		n := v.table.Inode(l.Dir)
		if n == nil || len(n.Links) == 0 {
			return nil, nil, false
		}
		l = n.Links[0]
	}
	slices.Reverse(dirs)
	slices.Reverse(names)
	return dirs, names, true
}

// ignored reports whether the rules that are known say that a name is not to be tracked.
// sure is false when rules that count were not learned.
func (v *View) ignored(l table.Link, dir bool) (is, sure bool) {
	dirs, names, ok := v.above(l)
	if !ok {
		return false, true
	}
	sure = true
	is = ignore.Covers(names, dir, func(n int) *ignore.Rules {
		sure = sure && v.learned(dirs[n])
		return v.ignores.rules[dirs[n]].Rules
	})
	return is, sure
}

// staysIgnored reports whether a name that gets n is known to be ignored, and so stays
// here. Where rules that count were not learned yet, as after a restart, the commit
// asks: nobody would look again at a name that stays for the others alone.
func (v *Tx) staysIgnored(l table.Link, n *table.Inode) bool {
	if rec, _ := v.table.Name(l.Dir, l.Name); !v.ignoring() || rec.Remote != nil {
		return false
	}
	is, sure := v.ignored(l, isDir(n))
	if !sure {
		v.wantRules(l)
	}
	return is && sure
}

// rulesMoved follows what happens to an ignore file: other rules are learned soon if it
// happened here.
func (v *Tx) rulesMoved(l table.Link, here bool) {
	delete(v.ignores.absent, l.Dir)
	if here {
		v.wantRules(l)
	}
}

// wantRules has the rules that count for a name learned soon: more may be made where it
// is.
func (v *Tx) wantRules(l table.Link) {
	dirs, _, _ := v.above(l)
	for _, dir := range dirs {
		v.ignores.wanted[dir] = struct{}{}
	}
	v.wakes = true
}

// onlyIgnored reports whether a name stays here for no other reason: it does not any
// more once the backend has one like it.
func (v *View) onlyIgnored(l table.Link, rec table.Name) bool {
	n := v.table.Inode(rec.Ino)
	if !rec.Local || n == nil || !v.ignoring() || !v.sendable(n) {
		return false
	}
	at, ok := v.LocalPath(l)
	return ok && (v.o.Exclude == nil || !v.o.Exclude.Match(at.String(), isDir(n)))
}

// leavesIgnored reports whether a directory that the backend has would be ignored under
// a name: what is in it would have to be deleted there, each by itself.
func (v *View) leavesIgnored(p *place, to table.Link) bool {
	rec, _ := v.table.Name(to.Dir, to.Name)
	if !v.ignoring() || len(p.n.RemoteLinks) == 0 || rec.Remote != nil {
		return false
	}
	is, _ := v.ignored(to, true)
	return is
}

// retell has what is below a directory, which has another name, looked at again before
// the next commit, unless the rules say the same of it there. Nobody who renames waits
// for that.
func (v *Tx) retell(from, to table.Link, dir table.Ino) {
	if v.ignoring() && !v.sameIgnored(from, to) {
		v.table.Set(lookKey+itoa(dir), []byte{1})
	}
}

// sameIgnored reports whether rules are known to say the same of all below a directory
// under two names. Those in it go along with it.
func (v *View) sameIgnored(a, b table.Link) bool {
	dirsA, namesA, ok := v.above(a)
	dirsB, namesB, ok2 := v.above(b)
	if !ok || !ok2 {
		return false
	}
	isA, sureA := v.ignored(a, true)
	isB, sureB := v.ignored(b, true)
	if !sureA || !sureB || isA != isB {
		return false
	}
	for n := range max(len(dirsA), len(dirsB)) {
		switch {
		case n < len(dirsA) && n < len(dirsB) && dirsA[n] == dirsB[n]:
			if !v.ignores.rules[dirsA[n]].Same(joined(namesA[n:]), joined(namesB[n:])) {
				return false
			}
		case n < len(dirsA) && !v.ignores.rules[dirsA[n]].Empty(), n < len(dirsB) && !v.ignores.rules[dirsB[n]].Empty():
			return false
		}
	}
	return true
}
