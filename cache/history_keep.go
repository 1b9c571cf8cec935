package cache

import (
	"errors"
	iofs "io/fs"
	"strconv"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// How content gets into the history:
//
//   - content whose last name is removed or replaced is not unlinked but moved,
//     by a rename, when nothing holds it any more;
//   - content that is about to be changed in place is copied first, when the
//     file is opened for that, if it is small;
//   - larger content is copied in the background, when it was closed and then
//     left alone for a while.
//
// What is current needs no copy: it is in the working copy. Of a file that
// changes all the time one version in keepPause is kept, and the last: of all,
// and of each actor.
const (
	keepPause = 2 * time.Second
	keepSmall = 4 << 20 // bytes that are copied while an open waits

	maxExpected = 1 << 16
)

// The reasons that the history knows of itself; any other text will do.
const (
	whyMade        = "made"         // by a program
	whyRemoved     = "removed"      // by a program
	whyReplaced    = "replaced"     // by a program's rename
	whyPulled      = history.Pulled // the backend had another
	whyOverwritten = "overwritten"  // what another wrote, and we replaced at the backend
	whyChanged     = "changed"      // what was there before a program's first change
	whyRestored    = "restored"
	whyRenamed     = "renamed"
	whyConflict    = "conflict" // changed here and there
	whyRevived     = "revived"  // another had put something into it
	whyLinked      = "linked"   // a file that had no name
)

// recordMade notes that an inode without content came to be. It is part of the update
// that makes it, after setLocal.
func (v *Tx) recordMade(l table.Link, ino table.Ino, why string) {
	r := history.About(Made, why, l, ino, v.table.Inode(ino))
	r.New = true
	v.addRecord(r)
}

// recordCame notes that a pull gave a name an inode. Its content, which may not be here,
// is a version. It is part of the update that did, after it.
func (v *Tx) recordCame(l table.Link) {
	rec, _ := v.table.Name(l.Dir, l.Name)
	n := v.table.Inode(rec.Ino)
	if n == nil {
		return
	}
	h := history.HeadOf(v, l)
	if _, old := history.ContentBehind(v, rec.Ino, h.ID); old != nil && old.Gen == n.ContentVersion {
		return // who gave it the name has said so
	}
	r := history.About(Made, whyPulled, l, rec.Ino, n)
	r.New = true
	v.addBehind(h, r)
}

// recordRenewed notes that an inode, of whose content nothing was here, has become
// another version, and where the store has the one before. It is part of the update that
// made it so.
func (v *Tx) recordRenewed(l table.Link, ino table.Ino, before *history.Past) {
	h := history.HeadOf(v, l)
	r := history.About(Written, whyPulled, l, ino, v.table.Inode(ino))
	r.Before = before
	r.Prev, _ = history.ContentBehind(v, ino, h.ID)
	v.addBehind(h, r)
}

// recordNamed notes that a file that had no name has one: with what is in it, on behalf
// of who wrote that. It is part of the update that gave it the name.
func (v *Tx) recordNamed(l table.Link, ino table.Ino, why string) {
	n := v.table.Inode(ino)
	if by, oi := v.by, v.open.Of(v.Tx.View, ino); !by.Known && oi != nil {
		v.by = oi.Writer(v.Tx.View)
		defer func() { v.by = by }()
	}
	r := history.About(Written, why, l, ino, n)
	r.New, r.Birth = true, v.now()
	id := v.addRecord(r)
	v.Later(func() { v.history.expect(ino, expected{id, r.Gen, v.o.Now().Add(keepPause)}) })
}

// recordVersion notes that the content of an inode is final.
func (v *Tx) recordVersion(n *table.Inode, ino table.Ino, why string) {
	if len(n.Links) == 0 || !n.IsRegular() {
		return
	}
	h := history.HeadOf(v, n.Links[0])
	prev, old := history.ContentBehind(v, ino, h.ID)
	if old != nil && old.Gen == n.ContentVersion {
		return
	}
	if oi := v.open.Of(v.Tx.View, ino); oi != nil && !v.by.Known {
		v.by = oi.Writer(v.Tx.View)
	}
	r := history.About(Written, why, n.Links[0], ino, n)
	r.Prev, r.New = prev, old == nil && history.IsOfHere(n)
	notePast(v, r, old, prev, ino, n)
	id := v.addBehind(h, r)
	v.Later(func() { v.history.expect(ino, expected{id, r.Gen, v.o.Now().Add(keepPause)}) })
}

// recordSent notes a new file that is about to be sent while its first writer has not
// closed it, or is just closing it: once the backend has it, nothing says any more that
// it came to be here.
func (v *Tx) recordSent(ino table.Ino, a *table.Attempt) {
	n := v.table.Inode(ino)
	carries := a.Kind == upload.AttemptWrite || a.Kind == upload.AttemptSet
	if carries && n != nil && n.ContentVersion == a.ContentVersion && n.Writing && history.IsOfHere(n) {
		by := v.by
		v.recordVersion(n, ino, "written")
		v.by = by
	}
}

// expect has the worker look at a version when it is due: when the first of
// those that came in a row is.
func (h *historyState) expect(ino table.Ino, p expected) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.expected[ino]; ok {
		p.due = old.due
	} else if len(h.expected) >= maxExpected {
		return
	}
	h.expected[ino] = p
	if len(h.expected) == 1 {
		h.wake()
	}
}

// recordMoved notes that an inode, a directory too, has another name. It is part of the
// update that renames, after setLocal.
func (v *Tx) recordMoved(ino table.Ino, from, to table.Link, why string) {
	n := v.table.Inode(ino)
	if n == nil {
		return
	}
	of, old := history.ContentOf(v, ino, from)
	r := history.About(Moved, why, to, ino, n)
	at, _ := v.LocalPath(from)
	r.From = &history.Place{Dir: from.Dir, Name: from.Name, Path: at.String()}
	r.New = old == nil && history.IsOfHere(n) && n.IsRegular()
	r.Of, r.Past = of, pastNow(v.View, ino, n)
	v.addRecord(r)
}

// keepReplaced notes that a name is about to lose its inode, and has the content go to
// the history, under the id returned, once nothing holds it. Of a directory or a link it
// is only noted. It is part of the update that takes the name away, before setLocal.
func (v *Tx) keepReplaced(l table.Link, ino table.Ino, why string) (id string, err error) {
	n := v.table.Inode(ino)
	if n == nil {
		return "", v.table.Err()
	}
	h := history.HeadOf(v, l)
	of, old := history.ContentBehind(v, ino, h.ID)
	r := history.About(Ended, why, l, ino, n)
	r.Prev, r.New, r.Past = of, old == nil && history.IsOfHere(n), pastNow(v.View, ino, n)
	moves := n.IsRegular() && n.State == table.Whole && n.Size > 0 && len(n.Links) == 1
	switch {
	case old != nil && old.Kept && old.Gen == n.ContentVersion:
		r.Of, moves = of, false
	case old != nil && why == whyReplaced && v.keptLately(l) && v.now()-old.Time < int64(keepPause) && !v.actsAnew(of, old):
		moves = false
	}
	number := v.addBehind(h, r)
	if moves {
		if old != nil && old.Gen == n.ContentVersion {
			old.Of = number // it is the same content
			history.Put(v, of, old)
		}
		v.table.Set(history.QueueKey(ino), []byte(history.StoreID(number)))
		v.keptNow(l)
	}
	return idText(number), nil
}

// keptLately reports whether content of a name went into the history less than keepPause
// ago.
func (v *View) keptLately(l table.Link) bool {
	at, ok := v.history.kept[l]
	return ok && v.o.Now().Sub(at) < keepPause
}

// keptNow notes that it does.
func (v *View) keptNow(l table.Link) {
	if len(v.history.kept) > 4096 {
		clear(v.history.kept)
	}
	v.history.kept[l] = v.o.Now()
}

// Freed implements tree.Keeper. The content goes where it was decided, into the history or
// away, once the disk knows of it: see files.DeferredUnlinks.
func (v *Tx) Freed(ino table.Ino, n *table.Inode) {
	id, _ := strconv.ParseUint(string(v.table.Get(history.QueueKey(ino))), 16, 64) // 0 for none
	r := history.Get(v, id)
	if r == nil || r.Gen != n.ContentVersion { // or it was written after it lost its name
		size := n.Blocks * 512
		v.table.Set(history.QueueKey(ino), []byte(goesAway))
		v.Later(func() { v.unlinks.Add(ino, files.DeferredUnlink{Size: size}) })
		return
	}
	r.Size = n.Size
	history.Keep(v, id, r, id)
	v.Later(func() { v.unlinks.Add(ino, files.DeferredUnlink{Kept: id}) })
}

// moveAway moves content into the history. The table says so already, and
// notes that it is to be done, for the case that we do not get here. A reader
// may have been first: see openKept.
func (v *Volume) moveAway(ino table.Ino, id uint64) {
	if err := v.store.Keep(ino, history.StoreID(id)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		v.o.Log.Error("history: content could not be kept", "version", id, "err", err)
		v.store.Remove(ino)
	}
	v.history.noteMoved(ino)
}

// noteMoved has the worker take away the note that content is to be moved.
func (h *historyState) noteMoved(ino table.Ino) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moved = append(h.moved, ino)
	if len(h.moved) == 1 {
		h.wake()
	}
}

// keepBefore keeps content that is about to be changed in place, unless the
// history has it or it is large. It is called when a clean inode is opened for
// writing or truncated, before the change, without the volume's lock. What goes wrong is only
// logged: it is no reason to refuse the change.
func (v *Volume) keepBefore(ino table.Ino) {
	gen, ok := v.unkept(ino)
	if !ok {
		return
	}
	if err := v.keepCopy(ino, gen, nil); err != nil {
		v.o.Log.Warn("history: content was not kept before a change", "ino", ino, "err", err)
	}
}

// unkept is the state of an inode's content, if that should be copied now.
func (v *Volume) unkept(ino table.Ino) (gen uint64, ok bool) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	if n == nil || !n.IsRegular() || len(n.Links) == 0 || n.State != table.Whole || n.Writing ||
		n.Size == 0 || n.Size > keepSmall {
		return 0, false
	}
	of, old := history.ContentOf(locked, ino, n.Links[0])
	if old != nil && old.Kept && old.Gen == n.ContentVersion ||
		locked.keptLately(n.Links[0]) && !locked.isTurn(ino) && !locked.actsAnew(of, old) {
		return 0, false
	}
	locked.keptNow(n.Links[0])
	return n.ContentVersion, true
}

// isTurn reports whether content is what somebody asked to be committed: he may ask for
// it again, however soon the next followed.
func (v *View) isTurn(ino table.Ino) bool {
	_, committed := v.OriginOf(ino)
	return committed && v.o.Policy.Commit == DueAsked
}

// keepCopy copies the content of an inode, which is in the state gen, into the
// history, if and with what also says so.
func (v *Volume) keepCopy(ino table.Ino, gen uint64, also func(*content.Snapshot) (copies bool, err error)) error {
	f, err := v.store.Open(ino)
	if err != nil {
		return err
	}
	defer f.Release()
	snap, err := f.Snapshot(v.ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	if !v.isQuietly(ino, gen) {
		return nil // the snapshot may be of another state
	}
	if also != nil {
		if copies, err := also(snap); err != nil || !copies {
			return err
		}
	}
	locked := v.lock()
	id := locked.table.NextSeq()
	locked.unlock()
	if err := v.store.KeepSnapshot(snap, history.StoreID(id)); err != nil {
		return err
	}
	err = v.update(func(v *Tx) error { return v.adoptCopy(ino, gen, id, snap.Size()) })
	if err != nil {
		err = errors.Join(err, v.store.DropKept(history.StoreID(id)))
	}
	return err
}

// isQuietly reports whether content is in a state, and nobody may be changing
// it.
func (v *Volume) isQuietly(ino table.Ino, gen uint64) bool {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	return n != nil && n.ContentVersion == gen && !n.Writing
}

// errOutrun says that what was to be recorded is history already.
var errOutrun = errors.New("the file changed meanwhile")

// adoptCopy enters content of a state that was copied into the store under an id.
func (v *Tx) adoptCopy(ino table.Ino, gen, id uint64, size int64) error {
	n := v.table.Inode(ino)
	if n == nil || len(n.Links) == 0 {
		return errOutrun
	}
	at, r := history.ContentOf(v, ino, n.Links[0])
	if r == nil || r.Gen != gen {
		if n.ContentVersion != gen {
			return errOutrun
		}
		prev := at
		r = history.About(Ended, whyChanged, n.Links[0], ino, n)
		r.Stays, r.Prev, r.Past = true, prev, pastNow(v.View, ino, n)
		at = v.addRecord(r)
	}
	r.Size = size
	history.Keep(v, at, r, id)
	return nil
}
