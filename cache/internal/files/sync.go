package files

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// An fsync of content that is only local for now costs as much as the disk needs to keep it: the
// content, and the table only when that has a new record which the file depends on. While the
// table on the disk says that content may be changing (Inode.Writing), a start after a loss of
// power takes size and time from the content itself, so a database that commits again and again,
// and has the file open all the time, waits for the table only when names have changed.
//
// The content version that was synced is noted a while later, together with those of all
// others. A loss of power in between loses nothing, but the file is suspect, as if it had
// not been synced.

// TableSync brings the table to the disk, and knows whether it is there.
type TableSync struct {
	Tree *tree.Tree

	// The lock of the tree guards these.
	commits uint64 // commits that record more than the state of content
	synced  uint64 // so many of them are on the disk
}

// Committed notes a transaction that records more than the state of content.
func (s *TableSync) Committed(*tree.View) { s.commits++ }

// HasNames reports whether the disk has every change of the table but those of the state of
// content that the table knows to be changing.
func (s *TableSync) HasNames() bool {
	s.Tree.Lock()
	defer s.Tree.Unlock()
	return s.synced >= s.commits
}

// SyncNames brings the table to the disk, unless the disk has its names.
func (s *TableSync) SyncNames() error {
	if s.HasNames() {
		return nil
	}
	return s.Sync()
}

// Sync brings the table to the disk.
func (s *TableSync) Sync() error {
	s.Tree.Lock()
	at := s.commits
	s.Tree.Unlock()
	err := s.Tree.Sync()
	if err == nil {
		s.Tree.Lock()
		s.synced = max(s.synced, at)
		s.Tree.Unlock()
	}
	return err
}

// syncNotes are content versions that are on the disk and not noted in the table yet; nil:
// no goroutine is about to note them. The lock of the tree guards it.
type syncNotes map[table.Ino]uint64

// isNoted reports whether a content version of an inode is about to be noted.
func (s syncNotes) isNoted(_ *tree.View, ino table.Ino, version uint64) bool {
	return s[ino] == version
}

// write records them in the table; it changes nothing if the table says so already.
func (s syncNotes) write(t Tx) error {
	for ino, version := range s {
		if n := t.Tree().Inode(ino); n != nil && n.Synced < version {
			t.Tree().Edit(ino).Synced = version
		}
	}
	t.Light()
	return nil
}

// notedAfter is the most time until the table says that the disk has content.
const notedAfter = time.Second

// Sync has the disk keep content and names through a loss of power, once the table has the
// changes.
func (o *Opener) Sync(oi *OpenInode) error {
	v := o.o.Tree.Lock()
	n := v.Inode(oi.Ino)
	version, writing := uint64(0), false
	if n != nil {
		version, writing = n.ContentVersion, n.Writing
	}
	o.o.Tree.Unlock()
	if !writing {
		return o.syncClosed(oi, version)
	}
	names := make(chan error, 1)
	go func() { names <- o.o.Syncs.SyncNames() }() // it does not record this sync of the content yet
	err := oi.f.Sync()
	if err = errors.Join(err, <-names); err == nil {
		o.noteLater(oi.Ino, version)
	}
	return err
}

// syncClosed is Sync for content that the table does not take for changing: only the
// table says that the disk has it, and so must be synced with it.
func (o *Opener) syncClosed(oi *OpenInode, version uint64) error {
	if err := oi.f.Sync(); err != nil {
		return err
	}
	if err := o.o.Volume.Update(syncNotes{oi.Ino: version}.write); err != nil {
		return err
	}
	return o.o.Syncs.Sync()
}

// noteLater has it noted within notedAfter that the disk has a content version, and does
// not wait for that.
func (o *Opener) noteLater(ino table.Ino, version uint64) {
	v := o.o.Tree.Lock()
	defer o.o.Tree.Unlock()
	if o.notes == nil && o.o.Go(v, func() {
		_ = o.o.Pause(o.o.Context, notedAfter)
		o.note()
	}) {
		o.notes = syncNotes{}
	}
	if o.notes != nil {
		o.notes[ino] = max(o.notes[ino], version)
	}
}

// note records the versions that noteLater was told of. The dirty intent of files that have
// not changed since ends: they are not suspect any more.
func (o *Opener) note() {
	var states syncNotes
	err := o.o.Volume.Update(func(t Tx) error {
		states, o.notes = o.notes, nil // a close finds these notes, or the table's record
		return states.write(t)
	})
	for ino := range states {
		err = errors.Join(err, o.rest(ino))
	}
	if err = errors.Join(err, o.o.Syncs.Sync()); err != nil && o.o.Context.Err() == nil {
		o.o.Log.Warn("what was synced would be suspect after a loss of power", "err", err)
	}
}

// rest ends the dirty intent of a file that a program keeps open, for as long as the
// program changes nothing.
func (o *Opener) rest(ino table.Ino) error {
	oi := o.IfOpen(ino)
	if oi == nil {
		return nil
	}
	defer o.Release(oi)
	held := oi.lock()
	defer held.unlock()
	if !oi.idle() || oi.f == nil || oi.f.Writes() != oi.seen || oi.stamp.Load() != 0 || oi.unseen.Load() {
		return nil // the next change finds that the table says so already
	}
	return o.o.Volume.Update(func(t Tx) error {
		if n := t.Tree().Edit(ino); n != nil {
			SetDirtyIntent(t.Tree(), ino, n, false)
		}
		t.Light()
		return nil
	})
}
