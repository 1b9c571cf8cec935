package cache

import (
	"cmp"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
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
	after, wakes := v.endUpdate()
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
			v.endUpdate()
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

// endUpdate ends an update, and returns what it left to be done. mu is held.
func (v *Volume) endUpdate() (after []func(), wakes bool) {
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
