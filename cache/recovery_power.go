package cache

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// survey looks at all content after the disk may have lost some.
func (r *recovery) survey() error {
	v := r.v
	opened := map[table.Ino]bool{}
	for _, w := range r.writing {
		opened[w.ino] = true
	}
	seen := map[table.Ino]bool{}
	deadline := v.o.Now().Add(verifyFor)
	err := v.store.Each(func(ino uint64, _ string, size int64, _ bool) {
		seen[ino] = true
		if !opened[ino] {
			r.judge(ino, size, deadline)
		}
	})
	if err != nil {
		return err
	}
	return v.view(func(v *View) error {
		v.table.Dirty(0, func(_ uint64, l table.Link) bool {
			rec, _ := v.table.Name(l.Dir, l.Name)
			if n := v.table.Inode(rec.Ino); n != nil && n.IsRegular() && n.State != table.None && !seen[rec.Ino] && !opened[rec.Ino] {
				r.lost = append(r.lost, rec.Ino)
			}
			return true
		})
		return nil
	})
}

// verifyFor is how long a start reads clean content to find out what it can
// keep of it. The rest is fetched again when it is needed.
const verifyFor = time.Second

// judge decides on one content file that nobody is known to have had open: somebody may have.
func (r *recovery) judge(ino table.Ino, size int64, deadline time.Time) {
	v := r.v
	locked := v.lock()
	p := locked.table.Inode(ino)
	if p == nil || p.State == table.None {
		locked.unlock()
		return // for sweep
	}
	n := *p
	origin, clean := locked.OriginOf(ino)
	locked.unlock()
	switch {
	case !clean && n.State == table.Partial:
		r.unsaved[ino] = n.Size
	case !clean:
		r.unsaved[ino] = size
	case n.State == table.Partial:
	case v.o.Now().Before(deadline) && v.intact(ino, size, &n, origin.Digest):
	default:
		r.drop = append(r.drop, ino)
	}
}

// intact reports whether clean content still is what its digest says.
func (v *Volume) intact(ino table.Ino, size int64, n *table.Inode, digest string) bool {
	if digest == "" || size != n.Size || n.State != table.Whole {
		return false
	}
	f, err := v.store.Open(ino)
	if err != nil {
		return false
	}
	defer f.Release()
	ok, _ := matches(f, digest)
	return ok && f.Whole()
}

// loseContent deals with content that is gone, or never came to the disk: what the
// backend has is fetched again; what it does not have is lost, and the file says so by
// being suspect.
func (r *recovery) loseContent(v *Tx, ino table.Ino) {
	n := v.table.Edit(ino)
	if n == nil {
		return
	}
	path, _ := v.LocalPathOf(ino)
	lost := n.ContentVersion
	for _, l := range n.RemoteLinks {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if rec.Remote != nil && rec.Remote.Ino == ino && rec.Remote.Version.Size >= 0 {
			base := *rec.Remote
			base.ContentVersion = n.ContentVersion // what it has there is what there is
			rec.Remote = &base
			v.table.SetName(l.Dir, l.Name, rec)
			n = v.table.Edit(ino)
			n.State, n.Origin, n.Size, n.Suspect = table.None, table.Origin{}, rec.Remote.Version.Size, n.Suspect || rec.Attempt != nil // which may have arrived, of another size
			v.Mark(l)
			lost = 0
		}
	}
	if lost != 0 {
		n.State, n.Suspect = table.None, true
		n.Size, n.Blocks = 0, 0
		lostLater(v, path.String(), "the content did not reach the disk before the power was lost")
		return
	}
	lostLater(v, path.String(), "a change did not reach the disk before the power was lost; the file is what the backend has")
}

func lostLater(v *Tx, path, what string) {
	v.Later(func() { v.report("recover", path, errors.New(what)) })
}
