package history

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// How content gets into the history:
//
//   - content whose last name is removed or replaced is not unlinked but moved, by a rename, when
//     nothing holds it any more;
//   - content that is about to be changed in place is copied first, when the file is opened for
//     that, if it is small;
//   - larger content is copied in the background, when it was closed and then left alone for a
//     while.
//
// Current content needs no copy: it is in the working copy. Of a file that changes all the time
// one version in keepPause is kept, and the last: of all, and of each actor.
const (
	keepSmall   = 4 << 20 // see Options.Small
	keepPause   = 2 * time.Second
	maxExpected = 1 << 16
)

var _ files.Archive = (*Keeper)(nil)

// expect has the worker look at a version when it is due: of versions in a row, when the first is.
func (k *Keeper) expect(ino table.Ino, p expected) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, ok := k.expected[ino]; ok {
		p.due = old.due
	} else if len(k.expected) >= maxExpected {
		return
	}
	k.expected[ino] = p
	if len(k.expected) == 1 {
		k.wake()
	}
}

// IsKept implements files.Archive.
func (k *Keeper) IsKept(v *tree.View, id uint64) bool { return v.Get(KeptKey(id)) != nil }

// Keep implements files.Archive. The table already says where the content goes, and that the move
// is still to be done, in case this process does not get to it. A reader may have done it first:
// see OpenKept.
func (k *Keeper) Keep(ino table.Ino, id uint64) {
	if err := k.o.Store.Keep(ino, StoreID(id)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		k.o.Store.Remove(ino)
		err = errors.Join(err, k.notKept(id))
		k.o.Ended(chores.Keep, fmt.Errorf("version %d: %w", id, err))
	}
	k.Removed(ino)
}

// notKept takes back the note that content is kept under an id.
func (k *Keeper) notKept(id uint64) error {
	return k.o.Update(func(tx Tx) error {
		if value := tx.Get(KeptKey(id)); value != nil {
			GiveUp(tx, id, value)
		}
		return nil
	})
}

// Removed implements files.Archive: the worker removes the note that content is to go.
func (k *Keeper) Removed(ino table.Ino) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.moved = append(k.moved, ino)
	if len(k.moved) == 1 {
		k.wake()
	}
}

// Before keeps content that is about to be changed in place, unless the history has it or it is
// large. It is called when a clean inode is opened for writing or truncated, before the change,
// without the lock of the tree. An error is only logged: it is no reason to refuse the change.
func (k *Keeper) Before(ino table.Ino) {
	gen, ok := k.unkept(ino)
	if !ok {
		return
	}
	if err := k.keepCopy(ino, gen, nil); err != nil {
		k.o.Log.Warn("history: content was not kept before a change", "ino", ino, "err", err)
	}
}

// unkept is the state of an inode's content, if that should be copied now.
func (k *Keeper) unkept(ino table.Ino) (gen uint64, ok bool) {
	v := k.o.Tree.Lock()
	defer k.o.Tree.Unlock()
	n := v.Inode(ino)
	if n == nil || !n.IsRegular() || len(n.Links) == 0 || n.State != table.Whole || n.Writing ||
		n.Size == 0 || n.Size > k.o.Small {
		return 0, false
	}
	of, old := ContentOf(v, ino, n.Links[0])
	if old != nil && old.Kept && old.Gen == n.ContentVersion ||
		k.keptLately(v, n.Links[0]) && !k.isTurn(v, ino) && !k.actsAnew(v, of, old) {
		return 0, false
	}
	k.keptNow(v, n.Links[0])
	return n.ContentVersion, true
}

// isTurn reports whether content is in a commit that was asked for: a person may ask for it again,
// however soon the next followed.
func (k *Keeper) isTurn(v *tree.View, ino table.Ino) bool {
	_, committed := v.OriginOf(ino)
	return committed && k.o.Asked
}

// keepCopy copies the content of an inode, which is in the state gen, into the history, if also
// agrees.
func (k *Keeper) keepCopy(ino table.Ino, gen uint64, also func(*content.Snapshot) (copies bool, err error)) error {
	f, err := k.o.Store.Open(ino)
	if err != nil {
		return err
	}
	defer f.Release()
	snap, err := f.Snapshot(k.o.Context)
	if err != nil {
		return err
	}
	defer snap.Close()
	if !k.IsQuietly(ino, gen) {
		return nil // the snapshot may be of another state
	}
	if also != nil {
		if copies, err := also(snap); err != nil || !copies {
			return err
		}
	}
	id := k.o.Tree.Lock().NextSeq()
	k.o.Tree.Unlock()
	if err := k.o.Store.KeepSnapshot(snap, StoreID(id)); err != nil {
		return err
	}
	err = k.o.Update(func(tx Tx) error { return tx.adoptCopy(ino, gen, id, snap.Size()) })
	if err != nil {
		err = errors.Join(err, k.o.Store.DropKept(StoreID(id)))
	}
	return err
}

// IsQuietly reports whether content is in a state, and no program may be changing it.
func (k *Keeper) IsQuietly(ino table.Ino, gen uint64) bool {
	v := k.o.Tree.Lock()
	defer k.o.Tree.Unlock()
	n := v.Inode(ino)
	return n != nil && n.ContentVersion == gen && !n.Writing
}

// errOutrun says that the state to be recorded is out of date already.
var errOutrun = errors.New("the file changed meanwhile")

// adoptCopy enters content of a state that was copied into the store under an id.
func (tx Tx) adoptCopy(ino table.Ino, gen, id uint64, size int64) error {
	n := tx.Inode(ino)
	if n == nil || len(n.Links) == 0 {
		return errOutrun
	}
	at, r := ContentOf(tx, ino, n.Links[0])
	if r == nil || r.Gen != gen {
		if n.ContentVersion != gen {
			return errOutrun
		}
		r = About(Ended, whyChanged, n.Links[0], ino, n)
		r.Stays, r.Prev, r.Past = true, at, tx.k.PastOf(tx.View, ino, n)
		at = tx.add(r)
	}
	r.Size = size
	Keep(tx, at, r, id)
	return nil
}

// OpenKept opens the content of an inode that is kept under an id. The table may have it already
// while its move is still to be done.
func (k *Keeper) OpenKept(ino table.Ino, id uint64) (*os.File, error) {
	f, err := k.o.Store.OpenKept(StoreID(id))
	if !errors.Is(err, iofs.ErrNotExist) {
		return f, err
	}
	queued := string(k.o.Tree.Lock().Get(QueueKey(ino))) == StoreID(id)
	k.o.Tree.Unlock()
	if queued && k.o.Tree.Sync() == nil {
		_ = k.o.Store.Keep(ino, StoreID(id)) // the first caller does it
	}
	f, err = k.o.Store.OpenKept(StoreID(id)) // the move may have ended meanwhile
	if errors.Is(err, iofs.ErrNotExist) {
		err = ErrNotKept
	}
	return f, err
}

// ErrNotKept says that a version is known, but not its content: it lived too short, was too large,
// was never local, or is over the budget.
var ErrNotKept = errors.New("the content of this version was not kept")
