package cache

import (
	"cmp"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// update runs do as one atomic change of the table: all of what do did
// survives a kill when update returns, or nothing happened. What do put into
// v.after (with later) runs then, without the lock.
func (v *Volume) update(do func() error) error {
	v.mu.Lock()
	err := v.attempt(do)
	changed := v.table.Changed()
	heavy := !v.light && changed
	if err == nil {
		err = v.commitTable()
	}
	if err != nil {
		err = v.cause(err)
		v.undo()
	}
	if err == nil {
		if changed {
			v.updates++
		}
		if heavy {
			v.commits++
		}
		if v.o.within != nil {
			v.o.within(v.changed)
		}
		v.engine.noted(v.changed, v.unnamed)
		v.weighChanged()
	}
	after, wakes := v.settleUpdate()
	v.mu.Unlock()
	if err != nil {
		return err
	}
	if wakes {
		v.engine.wake()
	}
	for _, f := range after {
		f()
	}
	return nil
}

// commitTable commits what do did, if need be in the room of the ballast, which is for
// that: who removes something makes room. When there is none, clean content goes. mu is
// held.
func (v *Volume) commitTable() error {
	err := v.table.Commit()
	if errors.Is(err, table.ErrFull) && v.store.Relieve() {
		err = v.table.Commit()
	}
	if errors.Is(err, table.ErrFull) && v.evictInCommit() {
		err = v.table.Commit()
	}
	return err
}

// commitRoom is more than a commit sets aside for itself and for the next log.
const commitRoom = 1 << 20

// evictInCommit gives up clean content for the commit under way, which takes the
// records of that with it. Should it fail all the same, or the process end in between,
// the content is missing where its record says that it is here: openFile takes that of
// clean content for given up. So it must be clean by what the disk knows: neither by a
// commit that was not synced nor by this one. It reports whether anything went. mu is
// held.
func (v *Volume) evictInCommit() bool {
	if v.table.Sync() != nil {
		return false
	}
	changed := map[table.Ino]bool{}
	for _, l := range v.changed {
		if rec, ok := v.table.Name(l.Dir, l.Name); ok {
			changed[rec.Ino] = true
		}
	}
	for _, ino := range v.unnamed { // a name of it may be back when this fails
		changed[ino] = true
	}
	return v.store.EvictFor(commitRoom, func(ino table.Ino) bool { return !changed[ino] && v.giveUp(ino) }) > 0
}

// attempt runs do. A panic in it undoes what it did and leaves the lock: the
// front answers one request with an error and goes on, and what runs in the
// background ends the process, where others would wait for the lock for ever. mu
// is held.
func (v *Volume) attempt(do func() error) error {
	ended := false
	defer func() {
		if !ended {
			v.undo()
			v.settleUpdate()
			v.mu.Unlock()
		}
	}()
	err := do()
	ended = true
	return err
}

// undo takes back what an update did. mu is held.
func (v *Volume) undo() {
	v.table.Abort()
	clear(v.ignores.absent)
}

// settleUpdate ends an update, and returns what it left to be done. mu is held.
func (v *Volume) settleUpdate() (after []func(), wakes bool) {
	after, wakes = v.after, v.wakes
	v.engine.own, v.light = false, false
	v.after, v.wakes, v.changed, v.unnamed = nil, false, v.changed[:0], v.unnamed[:0]
	v.history.by = who{}
	return after, wakes
}

// view runs do, which changes nothing, under the lock.
func (v *Volume) view(do func() error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := do(); err != nil {
		return v.cause(err)
	}
	return v.table.Err()
}

// cause is why something went wrong: a table that has failed finds nothing, and what
// is looked for in it is not known to be missing. mu is held.
func (v *Volume) cause(err error) error { return cmp.Or(v.table.Err(), err) }

// later has f run once the change under way is committed. mu is held.
func (v *Volume) later(f func()) { v.after = append(v.after, f) }

// now is the time, in nanoseconds since 1970.
func (v *Volume) now() int64 { return v.o.Now().UnixNano() }

// stamp is now as an inode has it.
func (v *Volume) stamp() table.Time { return table.TimeOf(v.o.Now()) }

// contentChanged says that the content of an inode is in a new state, that of
// size bytes, since mtime: each of its names differs from the backend then.
// mu is held, in an update.
func (v *Volume) contentChanged(ino table.Ino, size int64, mtime table.Time) {
	n := v.table.Edit(ino)
	n.Gen++
	n.Metadata = providers.MetadataOfNew(n.Metadata)
	n.Size, n.Mtime, n.Ctime = size, mtime, v.stamp()
	v.markInode(n)
}

// attrChanged says that attributes which the backend may keep have changed; the
// caller has edited them. mu is held, in an update.
func (v *Volume) attrChanged(ino table.Ino) {
	n := v.table.Edit(ino)
	n.AttrGen++
	n.Ctime = v.stamp()
	v.markInode(n)
}

// markInode looks anew at each name of an inode.
func (v *Volume) markInode(n *table.Inode) {
	for _, l := range n.Links {
		v.mark(l)
	}
}

// mark puts a name into the order of changes when its two sides differ, and
// takes it out when they agree. It follows every change of a name or of what
// is behind it. mu is held, in an update.
func (v *Volume) mark(l table.Link) {
	rec, ok := v.table.Name(l.Dir, l.Name)
	if !ok {
		return
	}
	v.changed = append(v.changed, l)
	differ := v.differ(rec)
	if l.Name == v.o.IgnoreFile {
		v.rulesMoved(l, differ)
	}
	switch {
	case differ && rec.Seq == 0:
		rec.Seq = v.table.NextSeq() // not due yet: see engine.open
		v.wakes = v.wakes || v.engine.hurried()
	case !differ && rec.Seq != 0:
		rec.Seq, rec.Held = 0, nil
		v.wakes = true
	case differ:
		v.wakes = v.wakes || rec.Seq <= v.engine.due || v.engine.hurried() // another state of what was on its way
		return
	default:
		return
	}
	v.table.SetName(l.Dir, l.Name, rec)
}

// differ reports whether the backend has something else under a name than is
// here, or may have: a change was begun whose outcome is open. What stays here
// (Local) is nothing to the backend.
func (v *Volume) differ(rec table.Name) bool {
	switch {
	case rec.Attempt != nil:
		return true
	case rec.Local:
		return rec.Base != nil // what had the name before is to go
	case rec.Ino == 0:
		return rec.Base != nil
	case rec.Base == nil || rec.Base.Ino != rec.Ino:
		return true
	}
	n := v.table.Inode(rec.Ino)
	if n == nil {
		return false
	}
	return !isDir(n) && n.Gen != rec.Base.Gen || v.caps.Attributes != 0 && n.AttrGen != rec.Base.AttrGen
}

// setLocal gives a name an inode, or none (0). The kernel knows of it already:
// a request asked for it. mu is held, in an update.
func (v *Volume) setLocal(l table.Link, ino table.Ino, stays bool) {
	rec, _ := v.table.Name(l.Dir, l.Name)
	rec.Ino, rec.Local = ino, ino != 0 && stays
	if rec.Base != nil && v.o.Exclude != nil {
		if at, ok := v.home(l); ok && v.excluded(at, rec.Base.Kind) {
			rec.Base = nil // excluded since it was taken from there, which keeps it
		}
	}
	delete(v.displaced, l)
	v.setName(l, rec)
	v.mark(l)
}

// setName stores a record, and says which inode the name was taken from; 0: none.
// That may have nothing left that is to be sent. mu is held, in an update.
func (v *Volume) setName(l table.Link, rec table.Name) (from table.Ino) {
	if old, _ := v.table.Name(l.Dir, l.Name); old.Ino != 0 && old.Ino != rec.Ino {
		from = old.Ino
		v.unnamed = append(v.unnamed, from)
	}
	v.table.SetName(l.Dir, l.Name, rec)
	return from
}

// setBase says what the backend is now known to have under a name; nil:
// nothing. Listings that began before are told not to believe what they have of
// it. mu is held, in an update.
func (v *Volume) setBase(l table.Link, base *table.Base) {
	rec, _ := v.table.Name(l.Dir, l.Name)
	rec.Base, rec.Attempt = base, nil
	v.table.SetName(l.Dir, l.Name, rec)
	for listing := range v.listings {
		listing.touched[l] = true
	}
	v.mark(l)
	v.vacated(l)
}

// vacated lets a directory go that was removed here, once nothing is open about
// a name in it. mu is held, in an update.
func (v *Volume) vacated(l table.Link) {
	if _, there := v.table.Name(l.Dir, l.Name); !there {
		v.shed(l.Dir)
	}
}

// listing is a look at the backend that takes a while. What we change there
// meanwhile it may show or not.
type listing struct {
	// touched are names of which the backend may have something else than the
	// look shows: true if we changed it, false if another look found it.
	touched map[table.Link]bool
}

// found says that another look found something else under a name.
func (l *listing) found(name table.Link) {
	if !l.touched[name] { // what we changed stays marked
		l.touched[name] = false
	}
}

// beginListing is called before the backend is asked, endListing after what it
// said has been used.
func (v *Volume) beginListing() *listing {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.newListing()
}

// newListing is beginListing. mu is held.
func (v *Volume) newListing() *listing {
	l := &listing{touched: map[table.Link]bool{}}
	v.listings[l] = struct{}{}
	return l
}

func (v *Volume) endListing(l *listing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.listings, l)
}

// reap forgets an inode that nothing leads to any more: no name here or at the
// backend, no reference of the kernel, no open file. mu is held, in an update.
func (v *Volume) reap(ino table.Ino) {
	n := v.table.Inode(ino)
	if n == nil || ino == table.Root || len(n.Links) > 0 || len(n.Homes) > 0 || v.refs[ino] > 0 || v.open[ino] != nil {
		return
	}
	v.table.Drop(ino)
	if n.State != table.None {
		v.letGo(ino, n)
	}
}
