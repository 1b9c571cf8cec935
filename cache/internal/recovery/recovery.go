package recovery

import (
	"context"
	"errors"
	iofs "io/fs"
	"log/slog"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// The records of the table, see the package.
const (
	insteadPrefix = "instead/"
	diskKey       = "disk"
)

// Options are the parts of a working copy that recovery needs.
type Options struct {
	Tree    *tree.Tree
	Store   *content.Store
	Open    *files.OpenSet
	Volume  Volume
	Dir     string // the state directory
	Now     func() time.Time
	Context context.Context // ends with the working copy
	Log     *slog.Logger
}

// Volume is a working copy.
type Volume interface {
	// Update runs do as one change of the tree.
	Update(do func(Tx) error) error
	// Report tells a person of content that may be lost.
	Report(op, path string, err error)
}

// A Tx is a change of the tree, which also informs the rest of a working copy.
type Tx interface {
	Tree() *tree.Tx
	// Recovered notes that an inode now has content that a program wrote before the end.
	Recovered(ino table.Ino, n *table.Inode)
	// Orphaned notes that the inode is a file that lost its name to a pull.
	Orphaned(ino table.Ino)
}

// Recovery is the repair of a working copy at a start, and its findings.
type Recovery struct {
	o       Options
	session table.Session
	power   bool // the disk may have lost unsynced writes

	writing []writing
	orphans []table.Ino
	instead []table.Ino         // whose content was being replaced by a copy
	drop    []table.Ino         // clean content that cannot be trusted
	unsaved map[table.Ino]int64 // size on disk of content that the remote is not known to have
	suspect int                 // how many of those became suspect
	lost    []table.Ino         // missing content

	first numbers
}

// numbers are the first ones that this run gives out.
type numbers struct {
	ino table.Ino
	id  uint64 // of the history
}

// writing is an inode that was open for writing, and the state of its content file.
type writing struct {
	ino         table.Ino
	size, mtime int64
	blocks      int64
	state       table.State
	same        bool // unchanged: it still has its digest
	missing     bool
}

// New makes a Recovery that has not looked at anything yet.
func New(o Options) *Recovery { return &Recovery{o: o, unsaved: map[table.Ino]int64{}} }

// PowerLost reports whether the disk may have lost, since the run before, unsynced writes. The
// answer stays the same until the table is changed.
func PowerLost(v *tree.View) bool {
	s := v.Session()
	synced := s.Clean && v.Get(diskKey) != nil
	return !s.SameBoot && !synced
}

// Run repairs the working copy in the first commit of this run: after a kill it is either all
// done, or is done again.
func (r *Recovery) Run() error {
	began := r.o.Now()
	r.session = r.o.Tree.Lock().Session()
	r.o.Tree.Unlock()
	if r.session.First {
		return nil
	}
	if err := r.look(); err != nil {
		return err
	}
	if err := r.o.Volume.Update(r.apply); err != nil {
		return err
	}
	r.tell(r.o.Now().Sub(began))
	if r.IsToSweep() {
		v := r.o.Tree.Lock()
		r.first = numbers{v.Alloc(), v.NextSeq()}
		r.o.Tree.Unlock()
	}
	return nil
}

// look gathers the inodes to repair. In the table it changes no more than the records of
// copies.
func (r *Recovery) look() error {
	var inos []table.Ino
	err := r.o.Tree.View(func(v *tree.View) error {
		r.power = PowerLost(v)
		inos = files.DirtyIntents(v)
		r.orphans, r.instead = v.Orphans(), table.InosOf(v, insteadPrefix)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.finishInstead(); err != nil {
		return err
	}
	left := int64(verifyMost)
	for _, ino := range inos {
		w, err := r.measure(ino, &left)
		if err != nil {
			return err
		}
		r.writing = append(r.writing, w)
	}
	if r.power {
		return r.survey()
	}
	return nil
}

// verifyMost bounds the bytes that a start reads to find out that content which
// was open for writing is unchanged.
const verifyMost = 128 << 20

// measure looks at the content file of an inode that was open for writing.
func (r *Recovery) measure(ino table.Ino, left *int64) (writing, error) {
	w := writing{ino: ino}
	f, err := r.o.Store.Open(ino)
	if errors.Is(err, iofs.ErrNotExist) {
		w.missing = true
		return w, nil
	}
	if err != nil {
		return w, err
	}
	defer func() { f.Release() }()
	if !r.power && !f.Quiet() {
		if f, err = r.part(ino, f); err != nil {
			return w, err
		}
	}
	w.size, w.mtime, w.blocks, w.state = f.Size(), f.Mtime(), f.Blocks(), table.Partial
	if f.Whole() {
		w.state = table.Whole
	}
	w.same = r.isUnchanged(ino, f, left)
	return w, nil
}

// isUnchanged reports whether content that was clean when it was opened for writing still
// equals the remote's.
func (r *Recovery) isUnchanged(ino table.Ino, f *content.File, left *int64) bool {
	v := r.o.Tree.Lock()
	size, digest := int64(-1), ""
	if n := v.Inode(ino); n != nil {
		size, digest = n.Size, digestOf(v, n)
	}
	r.o.Tree.Unlock()
	if digest == "" || !f.Whole() || f.Size() != size || f.Size() > *left {
		return false
	}
	*left -= f.Size()
	return f.Verify(r.o.Context, digest) == nil
}

// digestOf is the remote's digest of an inode's content, "" unless it is the same, and of the
// current version, under each remote name: content that was written during an upload may be
// newer than the remote's under one name, and not under another.
func digestOf(v *tree.View, n *table.Inode) (digest string) {
	for i, l := range n.RemoteLinks {
		b := v.Record(l).Remote
		if b == nil || b.ContentVersion != n.ContentVersion || b.Digest == "" || i > 0 && b.Digest != digest {
			return ""
		}
		digest = b.Digest
	}
	return digest
}

// survivor is the name of kept content that takes the place of an inode's.
func survivor(ino table.Ino) string { return "survivor-" + strconv.FormatUint(ino, 10) }

// part gives an inode a copy of its content, because a program that had the file open or mapped
// through the run before can still write into it. That program keeps the old file.
func (r *Recovery) part(ino table.Ino, f *content.File) (*content.File, error) {
	snap, err := f.Snapshot(r.o.Context)
	if err != nil {
		return f, nil // not all local: it cannot be copied, and stays as it is
	}
	err = r.o.Store.KeepSnapshot(snap, survivor(ino))
	snap.Close()
	if err != nil {
		return f, err
	}
	if err := r.noteInstead(ino, []byte(survivor(ino))); err != nil {
		return f, err
	}
	r.o.Log.Warn("a program of the mount before can still write to a file; it goes on with a copy", "ino", ino)
	own, err := r.o.Store.Restore(r.o.Context, survivor(ino), ino, "")
	if err != nil {
		return f, err
	}
	f.Release()
	return own, errors.Join(r.noteInstead(ino, nil), r.o.Store.DropKept(survivor(ino)))
}

// noteInstead records the kept content that replaces an inode's (nil: none), ahead of the
// replacement: a kill during that may leave the inode without a content file.
func (r *Recovery) noteInstead(ino table.Ino, id []byte) error {
	return r.o.Volume.Update(func(tx Tx) error {
		tx.Tree().Set(table.KeyOf(insteadPrefix, ino), id)
		return nil
	})
}

// finishInstead completes the replacements that an earlier start began.
func (r *Recovery) finishInstead() error {
	for _, ino := range r.instead {
		f, err := r.o.Store.Restore(r.o.Context, survivor(ino), ino, "")
		if err == nil {
			f.Release()
		} else if !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// apply changes the table.
func (r *Recovery) apply(tx Tx) error {
	v := tx.Tree()
	if v.Get(diskKey) != nil {
		v.Set(diskKey, nil)
	}
	for _, w := range r.writing {
		r.take(tx, w)
	}
	for ino, size := range r.unsaved {
		if v.Survived(ino, size) {
			r.suspect++
		}
	}
	for _, ino := range r.lost {
		r.loseContent(v, ino)
	}
	for _, ino := range r.drop {
		n := v.Edit(ino)
		n.State, n.Origin, n.Suspect = table.None, table.Origin{}, false
		v.Later(func() { r.o.Store.Remove(ino) })
	}
	for _, ino := range r.instead {
		v.Set(table.KeyOf(insteadPrefix, ino), nil)
		v.Later(func() { _ = r.o.Store.DropKept(survivor(ino)) }) // else Sweep does
	}
	for _, ino := range r.orphans {
		v.Shed(ino)
		if n := v.Inode(ino); n == nil || len(n.Links) > 0 {
			v.SetOrphan(ino, false)
		}
	}
	return nil
}

// take flushes the state of a content file into the table.
func (r *Recovery) take(tx Tx, w writing) {
	v := tx.Tree()
	n := v.Edit(w.ino)
	if n == nil {
		files.SetDirtyIntent(v, w.ino, nil, false)
		return
	}
	files.SetDirtyIntent(v, w.ino, n, false)
	files.SetDirtyIntent(v, w.ino, nil, false)
	switch {
	case w.missing && n.State != table.None:
		r.loseContent(v, w.ino)
		return
	case w.missing || w.same:
		return
	}
	n.State, n.Blocks = w.state, w.blocks
	n.Suspect = n.Suspect || r.power
	v.ContentChanged(w.ino, w.size, table.Latest(table.Stamp(w.mtime), n.Mtime))
	tx.Recovered(w.ino, n)
	if len(n.Links) == 0 && n.LostName != nil {
		tx.Orphaned(w.ino)
	}
}

// tell logs the findings.
func (r *Recovery) tell(took time.Duration) {
	if r.session.Clean && !r.power {
		return
	}
	r.o.Log.Warn("the working copy did not end cleanly", "power_lost", r.power,
		"open_for_writing", len(r.writing), "suspect", r.suspect, "lost", len(r.lost),
		"to_fetch_again", len(r.drop), "without_name", len(r.orphans), "took", took)
}
