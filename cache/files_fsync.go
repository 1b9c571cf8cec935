package cache

import (
	"errors"
	"maps"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// An fsync of what stays here for now costs what the disk needs to keep it: the
// content, and the table only when that has something new which the file
// depends on. While the table on the disk says that content may be changing
// (Inode.Writing), a start after a loss of power takes size and time from the
// content itself, so a database that commits again and again, and has the file
// open all the time, waits for the table when names have changed only.
//
// What the content was then is noted a while later, together with that of all
// others. A loss of power in between loses nothing, but the file is suspect, as
// if it had not been synced.

// notedAfter is how long the note may take that the disk has content.
const notedAfter = time.Second

// Fsync implements fs.File. What stays here goes to the disk, else the backend
// has it, with every change of names and attributes before.
func (f *file) Fsync(op *fs.Op, _ bool) error {
	v := f.v
	stays := f.staysHere()
	if !stays && !v.o.Policy.NoWait {
		if err := v.flushMetadata(f.oi.ino); err != nil {
			return err
		}
		return v.waitForContent(op, f.oi.ino)
	}
	if err := v.flush(f.oi, true); err != nil {
		return err
	}
	if !stays {
		if err := v.waitForContent(op, f.oi.ino); err != nil {
			return err
		}
	}
	return v.syncHere(f.oi)
}

// syncHere has the disk keep content and names through a loss of power.
func (v *Volume) syncHere(oi *openInode) error {
	locked := v.lock()
	n := locked.table.Inode(oi.ino)
	gen, writing := uint64(0), false
	if n != nil {
		gen, writing = n.ContentVersion, n.Writing
	}
	locked.unlock()
	if !writing {
		return v.syncClosed(oi, gen)
	}
	names := make(chan error, 1)
	go func() { names <- v.syncNames() }() // says nothing yet of the content
	err := oi.f.Sync()
	if err = errors.Join(err, <-names); err == nil {
		v.noteLater(oi.ino, gen)
	}
	return err
}

// syncClosed is syncHere for content that the table does not take for changing:
// what the disk has of it the table says, and so must be there with it.
func (v *Volume) syncClosed(oi *openInode, gen uint64) error {
	if err := oi.f.Sync(); err != nil {
		return err
	}
	if err := v.noteSynced(map[table.Ino]uint64{oi.ino: gen}); err != nil {
		return err
	}
	return v.syncTable()
}

// namesSynced reports whether the disk has every change of the table but those
// of the state of content that it knows to be changing.
func (v *Volume) namesSynced() bool {
	locked := v.lock()
	defer locked.unlock()
	return locked.synced >= locked.commits
}

// syncNames brings the table to the disk, unless the disk has its names.
func (v *Volume) syncNames() error {
	if v.namesSynced() {
		return nil
	}
	return v.syncTable()
}

// syncTable brings the table to the disk.
func (v *Volume) syncTable() error {
	locked := v.lock()
	at := locked.commits
	locked.unlock()
	err := v.tree.Sync()
	if err == nil {
		locked = v.lock()
		locked.synced = max(locked.synced, at)
		locked.unlock()
	}
	return err
}

// noteSynced notes that the disk has states of content.
func (v *Volume) noteSynced(states map[table.Ino]uint64) error {
	locked := v.lock()
	maps.DeleteFunc(states, func(ino table.Ino, gen uint64) bool {
		n := locked.table.Inode(ino)
		return n == nil || n.Synced >= gen
	})
	locked.unlock()
	if len(states) == 0 {
		return nil
	}
	return v.update(func(v *Tx) error {
		for ino, gen := range states {
			if n := v.table.Edit(ino); n != nil {
				n.Synced = max(n.Synced, gen)
			}
		}
		v.light = true
		return nil
	})
}

// noteLater is noteSynced within notedAfter, and nobody waits for it.
func (v *Volume) noteLater(ino table.Ino, gen uint64) {
	locked := v.lock()
	first := locked.noting == nil && !locked.closed
	if first {
		locked.noting = map[table.Ino]uint64{}
	}
	if locked.noting != nil {
		locked.noting[ino] = max(locked.noting[ino], gen)
	}
	locked.unlock()
	if first {
		v.background(func() {
			_ = v.pause(v.ctx, notedAfter)
			v.note()
		})
	}
}

// note notes what noteLater was told. Of files that are still as they were
// then, the intent to change ends: they are not suspect any more.
func (v *Volume) note() {
	locked := v.lock()
	states := locked.noting
	locked.noting = nil
	locked.unlock()
	err := v.noteSynced(maps.Clone(states))
	for ino := range states {
		err = errors.Join(err, v.rest(ino))
	}
	if err = errors.Join(err, v.syncTable()); err != nil && v.ctx.Err() == nil {
		v.o.Log.Warn("what was synced would be suspect after a loss of power", "err", err)
	}
}

// rest ends the intent to change a file that a program keeps open, for as long
// as it changes nothing.
func (v *Volume) rest(ino table.Ino) error {
	oi := v.ifOpen(ino)
	if oi == nil {
		return nil
	}
	defer v.release(oi)
	held := oi.lock()
	defer held.unlock()
	if !oi.idle() || oi.f == nil || oi.f.Writes() != oi.seen || oi.stamp.Load() != 0 || oi.unseen.Load() {
		return nil // the next change finds that the table says so already
	}
	return v.update(func(v *Tx) error {
		if n := v.table.Edit(ino); n != nil {
			v.setWriting(ino, n, false)
		}
		v.light = true
		return nil
	})
}
