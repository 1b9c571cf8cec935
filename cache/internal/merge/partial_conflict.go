package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Content of which a part is gone.
//
// A program that writes into the middle of a file has the pages that it touches fetched, and the
// rest comes when the file is sent. If others change or delete the file first, in a store that
// keeps one version, that rest is nowhere any more, and the local part will never be a version of
// the file.
//
// So it becomes none: the name goes to the remote's entry, whatever the policy, and the written
// part gets the name of a conflict copy, with zeros for the part that is gone. That is a file of
// its own: a program that has the partial one open gets an error for the missing part, and never
// reads a zero for it. The loss shows when the file is sent, or compared.

// isRemnant reports whether part of the content that a is about is local, and the rest nowhere.
func (v view) isRemnant(x table.Ino, a answer) bool {
	return a.broken && v.Inode(x).State == table.Partial
}

// salvage saves the local part of partial content, and gives the name to theirs.
func (s *sides) salvage() {
	if s.saveRemnant(s.rec.Ino) {
		s.takeTheirs()
		s.Report.Changed++
	}
}

// saveRemnant gives the local part of partial content the name of a conflict copy. It reports
// false while that is not made.
func (s *sides) saveRemnant(x table.Ino) bool {
	v, n := s.tx, s.tx.Inode(x)
	if n.State == table.None {
		s.tell(v, s.l, "modified or deleted on the remote before its content was fetched", false)
		return true
	}
	if s.Dry {
		return false
	}
	a, ok := s.look(query{question: question{ino: x, gen: n.ContentVersion, what: askRemnant}, l: s.l})
	if !ok {
		return false
	}
	if a.remnant.missing == a.remnant.Size { // opened for writing, and nothing was written
		s.tell(v, s.l, "modified or deleted on the remote before any of its content was fetched", false)
		return true
	}
	to, exists, ok := s.freeCopy(a.sum, false)
	if !ok {
		return false
	}
	if !exists {
		s.putRemnant(to, n, a.remnant)
	}
	s.tell(v, s.l, fmt.Sprintf("modified locally, and modified or deleted on the remote before all of it was fetched: what was written locally is in %s, with zeros for the %d bytes that are gone",
		to.Name, a.remnant.missing), true)
	return true
}

// putRemnant gives a free name the content file that was made, with the attributes of the partial
// content.
func (s *sides) putRemnant(to table.Link, of *table.Inode, r *remnant) {
	v, x := s.tx, r.Ino
	n := v.InodeOf(providers.Info{Kind: providers.KindFile, Size: r.Size})
	n.Mode, n.UID, n.GID, n.Xattrs, n.Mtime = of.Mode, of.UID, of.GID, of.Xattrs, of.Mtime
	n.Blocks, n.State, n.Birth, n.Ctime = r.Blocks, table.Whole, v.Now().UnixNano(), v.Stamp()
	n.Pulled = false // it is made locally
	v.Put(x, n)
	v.SetLocal(to, x)
	v.Notes.Named(to, x, history.WhyConflict)
	v.Place(x)
	v.TellWrote(to)
	s.touched = append(s.touched, to)
	s.used = append(s.used, x)
	s.shown(v, to)
}

// A remnant is the local part of partial content, made a file that no name has yet.
type remnant struct {
	files.Made
	missing int64 // bytes that are zeros now
}

// makeRemnant makes one. If no run of the merge uses it, it is removed at the end of the merge.
func (i *inquiry) makeRemnant(q query) (r *remnant, sum string, err error) {
	v := i.v
	locked := v.lock()
	at, _ := locked.LocalPath(q.l)
	x := locked.Alloc()
	locked.unlock()
	i.made = append(i.made, x)
	from, err := v.o.Store.Open(q.ino)
	if err != nil {
		return nil, "", err
	}
	defer from.Release()
	if from.Missing() == from.Size() {
		return &remnant{files.Made{Ino: x, Size: from.Size()}, from.Missing()}, "", nil
	}
	to, err := v.o.Store.Create(x, at.String())
	if err != nil {
		return nil, "", err
	}
	defer to.Release()
	h := sha256.New()
	if err = copyHere(i.ctx, to, from, h); err != nil {
		return nil, "", err
	}
	return &remnant{files.Made{Ino: x, Size: to.Size(), Blocks: to.Blocks()}, from.Missing()}, hex.EncodeToString(h.Sum(nil)), nil
}

// copyHere copies the local parts of a content, and leaves holes for the rest. All of it, zeros
// too, goes into h.
func copyHere(ctx context.Context, to, from *content.File, h hash.Hash) error {
	piece := make([]byte, 256<<10)
	zeros := make([]byte, len(piece))
	size := from.Size()
	for off := int64(0); off < size; {
		here, end := from.Extent(off)
		end = min(end, size, off+int64(len(piece)))
		p := zeros[:end-off]
		if here {
			p = piece[:end-off]
			if _, err := from.ReadAt(ctx, p, off); err != nil {
				return err
			}
			if _, err := to.WriteAt(ctx, p, off); err != nil {
				return err
			}
		}
		h.Write(p)
		off = end
	}
	return to.Truncate(ctx, size)
}
