package cache

import (
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// ignoring reports whether there are ignore files at all.
func (v *Volume) ignoring() bool { return v.o.IgnoreFile != "" && v.sets != nil }

// staysIgnored reports whether a name that gets n is known to be ignored, and so stays
// here. Where rules that count were not learned yet, as after a restart, the commit
// asks: nobody would look again at a name that stays for the others alone.
func (v *Tx) staysIgnored(l table.Link, n *table.Inode) bool {
	if rec, _ := v.table.Name(l.Dir, l.Name); !v.ignoring() || rec.Remote != nil {
		return false
	}
	is, sure := v.ignores.Ignored(v, l, n.IsDir())
	if !sure {
		v.wantRules(l)
	}
	return is && sure
}

// rulesMoved follows what happens to an ignore file: other rules are learned soon if it
// happened here.
func (v *Tx) rulesMoved(l table.Link, here bool) {
	v.ignores.Changed(l.Dir)
	if here {
		v.wantRules(l)
	}
}

// wantRules has the rules that count for a name learned soon: more may be made where it
// is.
func (v *Tx) wantRules(l table.Link) {
	v.ignores.Want(v, l)
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
	return ok && (v.o.Exclude == nil || !v.o.Exclude.Match(at.String(), n.IsDir()))
}

// leavesIgnored reports whether a directory that the backend has would be ignored under
// a name: what is in it would have to be deleted there, each by itself.
func (v *View) leavesIgnored(p *place, to table.Link) bool {
	rec, _ := v.table.Name(to.Dir, to.Name)
	if !v.ignoring() || len(p.n.RemoteLinks) == 0 || rec.Remote != nil {
		return false
	}
	is, _ := v.ignores.Ignored(v, to, true)
	return is
}

// retell has what is below a directory, which has another name, looked at again before
// the next commit, unless the rules say the same of it there. Nobody who renames waits
// for that.
func (v *Tx) retell(from, to table.Link, dir table.Ino) {
	if v.ignoring() && !v.ignores.Same(v, from, to) {
		rules.LookBelow(v, dir)
	}
}
