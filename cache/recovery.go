package cache

import (
	"errors"
	iofs "io/fs"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Records of the table for the next start, beside the dirty intents:
//
//	instead/<inode>   kept content that is about to become its content
//	disk              the session ended with everything on the disk
const (
	insteadPrefix = "instead/"
	diskKey       = "disk"
)

// recovery is what a start finds of the run before.
type recovery struct {
	v       *Volume
	session table.Session
	power   bool // the disk may have lost what was not synced

	writing []writing
	orphans []table.Ino
	instead []table.Ino         // whose content was being replaced by a copy
	drop    []table.Ino         // clean content that cannot be trusted
	unsaved map[table.Ino]int64 // what the disk has of content that the backend is not known to have
	suspect int                 // of those
	lost    []table.Ino         // content that should be there and is not
}

// writing is an inode that was open for writing, and what its content file says.
type writing struct {
	ino         table.Ino
	size, mtime int64
	blocks      int64
	state       table.State
	same        bool // nothing was written: it still has its digest
	missing     bool
}

// recoverLast deals with what the last run left, in the first commit of this
// one: either all of it is done, or it is done again.
//
// After a kill every byte that was written is in the content files; what was
// open for writing is taken as changed. When the machine went down too, the
// disk may have lost what was not synced, in any order: clean content is
// checked or dropped, and changed content is suspect.
func (v *Volume) recoverLast() error {
	began := v.o.Now()
	r := &recovery{v: v, unsaved: map[table.Ino]int64{}, session: v.state.table.Session()}
	if r.session.First {
		return nil
	}
	if err := r.look(); err != nil {
		return err
	}
	if err := v.update(r.apply); err != nil {
		return err
	}
	v.finishMoves()
	r.tell(v.o.Now().Sub(began))
	if !r.session.Clean {
		first := v.firstOfRun()
		v.background(func() { v.sweep(first, r.power) })
	}
	return v.view(func(*View) error { return nil }) // fails where the table has
}

// look finds out what there is to do, without changing the table.
func (r *recovery) look() error {
	v := r.v
	var inos []table.Ino
	err := v.view(func(v *View) error {
		synced := r.session.Clean && v.table.Get(diskKey) != nil
		r.power = !r.session.SameBoot && !synced
		inos = files.DirtyIntents(v.View)
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
func (r *recovery) measure(ino table.Ino, left *int64) (writing, error) {
	w := writing{ino: ino}
	f, err := r.v.store.Open(ino)
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
	w.same = r.unchanged(ino, f, left)
	return w, nil
}

// part gives an inode a copy of its content, because somebody who had it open
// or mapped through the run before can still write into the file. He keeps
// that, to himself.
func (r *recovery) part(ino table.Ino, f *content.File) (*content.File, error) {
	v := r.v
	snap, err := f.Snapshot(v.ctx)
	if err != nil {
		return f, nil // not wholly here: it cannot be copied, and stays as it is
	}
	id := "survivor-" + itoa(ino)
	err = v.store.KeepSnapshot(snap, id)
	snap.Close()
	if err != nil {
		return f, err
	}
	if err := v.noteInstead(ino, id); err != nil {
		return f, err
	}
	v.o.Log.Warn("a program of the mount before can still write to a file; it goes on with a copy", "ino", ino)
	own, err := v.store.Restore(v.ctx, id, ino, "")
	if err != nil {
		return f, err
	}
	f.Release()
	return own, errors.Join(v.noteInstead(ino, ""), v.store.DropKept(id))
}

// noteInstead notes which kept content takes the place of an inode's, before it
// does: in between there may be none.
func (v *Volume) noteInstead(ino table.Ino, id string) error {
	return v.update(func(v *Tx) error {
		if id == "" {
			v.table.Set(table.KeyOf(insteadPrefix, ino), nil)
		} else {
			v.table.Set(table.KeyOf(insteadPrefix, ino), []byte(id))
		}
		return nil
	})
}

// finishInstead does what a start before this one did not come to do.
func (r *recovery) finishInstead() error {
	for _, ino := range r.instead {
		f, err := r.v.store.Restore(r.v.ctx, "survivor-"+itoa(ino), ino, "")
		if err == nil {
			f.Release()
		} else if !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// apply changes the table.
func (r *recovery) apply(v *Tx) error {
	if v.table.Get(diskKey) != nil {
		v.table.Set(diskKey, nil)
	}
	for _, w := range r.writing {
		r.take(v, w)
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
		n := v.table.Edit(ino)
		n.State, n.Origin, n.Suspect = table.None, table.Origin{}, false
		v.Later(func() { v.store.Remove(ino) })
	}
	for _, ino := range r.instead {
		v.table.Set(table.KeyOf(insteadPrefix, ino), nil)
		v.Later(func() { _ = v.store.DropKept("survivor-" + itoa(ino)) }) // else sweep does
	}
	for _, ino := range r.orphans {
		v.Shed(ino)
		if n := v.table.Inode(ino); n == nil || len(n.Links) > 0 {
			v.SetOrphan(ino, false)
		}
	}
	return nil
}

// take brings what a content file says into the table.
func (r *recovery) take(v *Tx, w writing) {
	n := v.table.Edit(w.ino)
	if n == nil {
		files.SetDirtyIntent(v.Tx, w.ino, nil, false)
		return
	}
	files.SetDirtyIntent(v.Tx, w.ino, n, false)
	files.SetDirtyIntent(v.Tx, w.ino, nil, false)
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
	v.recordVersion(n, w.ino, "recovered")
	if len(n.Links) == 0 && n.LostName != nil {
		v.noteOrphanConflict(w.ino)
	}
}

// tell says what was found.
func (r *recovery) tell(took time.Duration) {
	if r.session.Clean && !r.power {
		return
	}
	r.v.o.Log.Warn("the working copy did not end cleanly", "power_lost", r.power,
		"open_for_writing", len(r.writing), "suspect", r.suspect, "lost", len(r.lost),
		"to_fetch_again", len(r.drop), "without_name", len(r.orphans), "took", took)
}

// finishMoves moves content into the history, or away, where the table says that
// it is to go and the last run did not come to it.
func (v *Volume) finishMoves() {
	type move struct {
		ino table.Ino
		id  string
	}
	var moves []move
	locked := v.lock()
	locked.table.Scan(history.QueuePrefix, "", func(key string, value []byte) bool {
		if ino := history.IDOf(key); locked.table.Inode(ino) == nil || locked.table.Inode(ino).State == table.None {
			moves = append(moves, move{ino, string(value)})
		}
		return true
	})
	locked.unlock()
	if len(moves) > 0 && v.tree.Sync() != nil {
		return
	}
	for _, m := range moves {
		var err error
		if m.id == goesAway {
			v.store.Remove(m.ino)
		} else {
			err = v.store.Keep(m.ino, m.id)
		}
		if err != nil && !errors.Is(err, iofs.ErrNotExist) {
			v.o.Log.Warn("history: content was not kept", "ino", m.ino, "err", err)
		}
		v.history.moved = append(v.history.moved, m.ino)
	}
	v.forgetMoved()
}
