package cache

import (
	"cmp"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// A View is the working copy for who holds its lock: to read the table, and what else
// the lock guards, and to change what of that is in memory alone. It ends with unlock.
type View struct {
	*Volume
	*guardedState
	lock, update, view, mu taken
}

// taken hides from who holds the lock what would wait for it for ever.
type taken struct{}

var _ = [...]taken{View{}.lock, View{}.update, View{}.view, View{}.mu}

// lock waits for the lock of the volume.
func (v *Volume) lock() *View {
	v.mu.Lock()
	return v.held
}

// unlock gives the lock back. The view must not be used any more.
func (v *View) unlock() { v.Volume.mu.Unlock() }

// A Tx is a change of the table under way: all of it survives a kill when update has
// returned, or nothing of it happened. Nothing else leads to what changes the table.
type Tx struct {
	*View
	after   []func()     // run when it is committed, without the lock
	wakes   bool         // it gives the engine something to do
	changed []table.Link // the names that it concerns
	unnamed []table.Ino  // inodes that lost a name in it
	light   bool         // it is of the state of content alone, see files_fsync.go
	own     bool         // it is an operation's, of the engine
	by      who          // asked for it
}

// update runs do as one atomic change of the table: all of what do did
// survives a kill when update returns, or nothing happened. What do gave to
// Tx.later runs then, without the lock.
func (v *Volume) update(do func(*Tx) error) error {
	tx := &Tx{View: v.lock()}
	if err := tx.run(do); err != nil {
		return err
	}
	if tx.wakes {
		v.engine.wake()
	}
	for _, f := range tx.after {
		f()
	}
	return nil
}

// run does do, commits it and gives the lock back.
func (v *Tx) run(do func(*Tx) error) error {
	defer v.unlock()
	err := v.attempt(do)
	changed := v.table.Changed()
	if err == nil {
		err = v.commitTable()
	}
	if err != nil {
		err = v.cause(err)
		v.undo()
		return err
	}
	if changed {
		v.updates++
	}
	if changed && !v.light {
		v.commits++
	}
	if v.o.within != nil {
		v.o.within(v)
	}
	v.engine.noted(v)
	v.weighChanged()
	return nil
}

// commitTable commits what do did, if need be in the room of the ballast, which is for
// that: who removes something makes room. When there is none, clean content goes.
func (v *Tx) commitTable() error {
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

// evictInCommit gives up clean content for the commit under way, which takes the records
// of that with it. Should it fail all the same, or the process end in between, the
// content is missing where its record says that it is here: openFile takes that of clean
// content for given up. So it must be clean by what the disk knows: neither by a commit
// that was not synced nor by this one. It reports whether anything went.
func (v *Tx) evictInCommit() bool {
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

// attempt runs do. A panic in it undoes what it did, and update leaves the lock: the
// front answers one request with an error and goes on, and what runs in the
// background ends the process, where others would wait for the lock for ever.
func (v *Tx) attempt(do func(*Tx) error) error {
	ended := false
	defer func() {
		if !ended {
			v.undo()
		}
	}()
	err := do(v)
	ended = true
	return err
}

// undo takes back what it did.
func (v *Tx) undo() {
	v.table.Abort()
	clear(v.ignores.absent)
}

// view runs do, which changes nothing, under the lock.
func (v *Volume) view(do func(*View) error) error {
	locked := v.lock()
	defer locked.unlock()
	if err := do(locked); err != nil {
		return locked.cause(err)
	}
	return locked.table.Err()
}

// syncDisk brings every change that was committed to the disk. It needs no lock.
func (v *Volume) syncDisk() error { return v.state.table.Sync() }

// cause is why something went wrong: a table that has failed finds nothing, and what is
// looked for in it is not known to be missing.
func (v *View) cause(err error) error { return cmp.Or(v.table.Err(), err) }

// later has f run once the change under way is committed.
func (v *Tx) later(f func()) { v.after = append(v.after, f) }

// now is the time, in nanoseconds since 1970.
func (v *Volume) now() int64 { return v.o.Now().UnixNano() }

// stamp is now as an inode has it.
func (v *Volume) stamp() table.Time { return table.TimeOf(v.o.Now()) }
