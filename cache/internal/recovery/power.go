package recovery

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// survey looks at all content after the disk may have lost some.
func (r *Recovery) survey() error {
	opened := map[table.Ino]bool{}
	for _, w := range r.writing {
		opened[w.ino] = true
	}
	seen := map[table.Ino]bool{}
	deadline := r.o.Now().Add(verifyFor)
	err := r.o.Store.Each(func(ino uint64, _ string, size int64, _ bool) {
		seen[ino] = true
		if !opened[ino] {
			r.judge(ino, size, deadline)
		}
	})
	if err != nil {
		return err
	}
	return r.o.Tree.View(func(v *tree.View) error {
		v.Dirty(0, func(_ uint64, l table.Link) bool {
			ino := v.Record(l).Ino
			if n := v.Inode(ino); n != nil && n.IsRegular() && n.State != table.None && !seen[ino] && !opened[ino] {
				r.lost = append(r.lost, ino)
			}
			return true
		})
		return nil
	})
}

// verifyFor bounds the time that a start reads clean content to find out which is intact. The
// rest is fetched again when it is needed.
const verifyFor = time.Second

// judge decides on one content file without a dirty intent. It may have been open all the same:
// the disk may have lost the intent.
func (r *Recovery) judge(ino table.Ino, size int64, deadline time.Time) {
	v := r.o.Tree.Lock()
	p := v.Inode(ino)
	if p == nil || p.State == table.None {
		r.o.Tree.Unlock()
		return // for Sweep
	}
	n := *p
	origin, clean := v.OriginOf(ino)
	r.o.Tree.Unlock()
	switch {
	case !clean && n.State == table.Partial:
		r.unsaved[ino] = n.Size
	case !clean:
		r.unsaved[ino] = size
	case n.State == table.Partial:
	case r.o.Now().Before(deadline) && r.isIntact(ino, size, &n, origin.Digest):
	default:
		r.drop = append(r.drop, ino)
	}
}

// isIntact reports whether clean content still has its digest.
func (r *Recovery) isIntact(ino table.Ino, size int64, n *table.Inode, digest string) bool {
	if digest == "" || size != n.Size || n.State != table.Whole {
		return false
	}
	f, err := r.o.Store.Open(ino)
	if err != nil {
		return false
	}
	defer f.Release()
	return f.Verify(r.o.Context, digest) == nil
}

// loseContent handles content that is gone, or never reached the disk: it is fetched again if
// the remote has it; otherwise it is lost, and the file becomes suspect.
func (r *Recovery) loseContent(v *tree.Tx, ino table.Ino) {
	n := v.Edit(ino)
	if n == nil {
		return
	}
	path, _ := v.LocalPathOf(ino)
	lost := n.ContentVersion
	for _, l := range n.RemoteLinks {
		rec := v.Record(l)
		if rec.Remote != nil && rec.Remote.Ino == ino && rec.Remote.Version.Size >= 0 {
			base := *rec.Remote
			base.ContentVersion = n.ContentVersion // the remote's version becomes the current one
			rec.Remote = &base
			v.SetName(l, rec)
			n = v.Edit(ino)
			n.State, n.Origin, n.Size, n.Suspect = table.None, table.Origin{}, rec.Remote.Version.Size, n.Suspect || rec.Attempt != nil // an attempt may have arrived
			v.Mark(l)
			lost = 0
		}
	}
	what := "a change did not reach the disk before the power was lost; the file is what the store has"
	if lost != 0 {
		n.State, n.Suspect = table.None, true
		n.Size, n.Blocks = 0, 0
		what = "the content did not reach the disk before the power was lost"
	}
	v.Later(func() { r.o.Volume.Report("recover", path.String(), errors.New(what)) })
}
