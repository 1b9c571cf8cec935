package merge

import (
	"strings"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// overwrite has ours sent in place of the remote's version.
func (s *sides) overwrite() { s.moveRemote(versionOf(s.theirs), s.rec.Ino) }

// hold keeps both sides as they are until a person resolves the conflict.
func (s *sides) hold(reason string) {
	since := s.tx.Now().UnixNano()
	if s.rec.Held == nil || !s.rec.Held.Conflict {
		s.tell(s.tx, s.l, reason, true)
	} else {
		at, _ := s.tx.LocalPath(s.l)
		s.clash(s.l, at.String())
		if side, ok := reconcile.DecodeHeld(s.rec.Held.Remote); ok {
			since = side.Since
		}
	}
	s.rec.Attempt = nil
	s.rec.Held = &table.Held{Reason: reason, Conflict: true, Remote: reconcile.Held{Info: *s.theirs, Since: since}.Encode()}
	s.set(s.tx, s.l, s.rec)
}

// takeTheirs gives the name to theirs; ours goes to the history.
func (s *sides) takeTheirs() {
	v, x := s.tx, s.rec.Ino
	if x == 0 {
		s.arrive()
		return
	}
	v.Bury(s.l, x, history.WhyPulled)
	y, n := s.fresh(x)
	v.Put(y, n)
	s.swap(y)
	was := remoteIno(s.rec)
	s.remoteSide(tree.RemoteOf(*s.theirs, y, n))
	s.lost(v, s.l, x)
	if was != x {
		s.leftRemote(v, was)
	}
}

// split keeps both: ours gets the name of a conflict copy, and programs that have it open go along
// with it; theirs gets the name.
func (s *sides) split() {
	v, x := s.tx, s.rec.Ino
	to, exists, ok := s.freeCopy(s.sum, false)
	if !ok {
		return
	}
	if exists {
		v.Bury(s.l, x, history.WhyConflict)
	}
	was := remoteIno(s.rec)
	y, n := s.fresh(was)
	v.Put(y, n)
	s.swap(y)
	s.remoteSide(tree.RemoteOf(*s.theirs, y, n))
	if exists {
		s.lost(v, s.l, x) // its content has that name already
	} else {
		s.nameCopy(to, x)
		v.TellWrote(to)
	}
	if was != x {
		s.leftRemote(v, was)
	}
	s.shown(v, s.l)
	v.TellWrote(s.l)
	s.Report.Changed++
	s.tell(v, s.l, "modified locally and on the remote: the local version was saved as "+to.Name, true)
}

// nameCopy gives the inode that had the name that of a conflict copy.
func (s *sides) nameCopy(to table.Link, x table.Ino) {
	v := s.tx
	v.SetLocal(to, x)
	v.Notes.Moved(x, s.l, to, history.WhyConflict)
	s.touched = append(s.touched, to)
	s.shown(v, to)
}

// aside gives the local entry of the name that of a conflict copy, because theirs is of another
// kind. It reports whether the name is free now.
func (s *sides) aside() bool {
	v, x := s.tx, s.rec.Ino
	sum, dir := reconcile.EmptyHash, v.Inode(x).IsDir()
	if !dir {
		a, ok := s.ask(x, nil)
		if !ok {
			return false
		}
		if v.isRemnant(x, a) && !v.o.Open.IsWritten(v.View, x) {
			if !s.saveRemnant(x) {
				return false
			}
			s.swap(0)
			s.lost(v, s.l, x)
			s.reload()
			return true
		}
		sum = a.sum
	}
	to, exists, ok := s.freeCopy(sum, dir)
	if !ok {
		return false
	}
	if exists {
		v.Bury(s.l, x, history.WhyConflict)
	}
	s.swap(0)
	if exists {
		s.lost(v, s.l, x)
	} else {
		s.nameCopy(to, x)
	}
	s.tell(v, s.l, "replaced on the remote by another kind of file, modified locally: the local version was saved as "+to.Name, true)
	s.reload()
	return true
}

// freeCopy is the name of a conflict copy of content with a hash, and whether the same content has
// it already. All questions about entries in the way are asked at once.
func (s *sides) freeCopy(sum string, dir bool) (to table.Link, exists, ok bool) {
	known := true
	for name := range reconcile.CopyNames(s.l.Name, sum) {
		to = table.Link{Dir: s.l.Dir, Name: name}
		rec := s.tx.Record(to)
		switch {
		case rec.Ino == 0:
			return to, false, known
		case dir: // the entries of a directory cannot be compared
			continue
		}
		same, ok := s.sameSum(to, rec, sum)
		if same {
			return to, true, known
		}
		known = known && ok
	}
	return to, false, false
}

// sameSum reports whether the entry of a name is content with a hash.
func (s *sides) sameSum(l table.Link, rec table.Name, sum string) (same, ok bool) {
	n := s.tx.Inode(rec.Ino)
	if n.IsDir() || !n.IsRegular() && !n.IsSymlink() {
		return false, true
	}
	if b := rec.Remote; b != nil && b.Ino == rec.Ino && b.ContentVersion == n.ContentVersion && strings.HasPrefix(b.Digest, "sha256:") {
		return b.Digest == "sha256:"+sum, true
	}
	a, ok := s.at(s.tx, l, nil).ask(rec.Ino, nil)
	return ok && a.sum == sum, ok
}
