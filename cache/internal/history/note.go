package history

import (
	"errors"
	"strconv"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// The known values of Record.Why; any other text will do.
const (
	WhyMade        = "made"        // by a program
	WhyRemoved     = "removed"     // by a program
	WhyReplaced    = "replaced"    // by a program's rename
	WhyPulled      = "pulled"      // the remote had another
	whyOverwritten = "overwritten" // another writer's content, which we replaced at the remote
	whyChanged     = "changed"     // the content before a program's first change
	WhyRestored    = "restored"
	WhyRenamed     = "renamed"
	WhyConflict    = "conflict" // modified locally and on the remote
	WhyRevived     = "revived"  // another writer had put an entry into the directory
	WhyLinked      = "linked"   // a file that had no name
)

// goesAway is queued for content that does not go into the history.
const goesAway = "-"

// A Tx notes the changes of a transaction of the tree, as a part of it.
type Tx struct {
	*tree.Tx
	k  *Keeper
	by *files.Caller // that asked for it
}

// In makes a Tx for a transaction that by asked for; by may be filled in later.
func (k *Keeper) In(tx *tree.Tx, by *files.Caller) Tx { return Tx{tx, k, by} }

// add appends a record to the history of its name.
func (tx Tx) add(r *Record) (id uint64) { return tx.addBehind(HeadOf(tx, r.Link()), r) }

// addBehind is add where the last record of the name is known.
func (tx Tx) addBehind(h Head, r *Record) (id uint64) {
	at, _ := tx.LocalPath(r.Link())
	r.Path, r.Time, r.Actor = at.String(), tx.k.o.Now().UnixNano(), tx.k.actor
	tx.k.sign(tx.View, r, *tx.by)
	id = Append(tx, h, r)
	tx.Later(func() { tx.k.added(r) })
	return id
}

// Made notes that an inode without content was made, after its name was set.
func (tx Tx) Made(l table.Link, ino table.Ino, why string) {
	r := About(Made, why, l, ino, tx.Inode(ino))
	r.New = true
	tx.add(r)
}

// Came notes that a pull gave a name an inode, after it did. The content, which may not be local,
// is a version.
func (tx Tx) Came(l table.Link) {
	ino := tx.Record(l).Ino
	n := tx.Inode(ino)
	if n == nil {
		return
	}
	h := HeadOf(tx, l)
	if _, old := ContentBehind(tx, ino, h.ID); old != nil && old.Gen == n.ContentVersion {
		return // a record of the name's new inode exists already
	}
	r := About(Made, WhyPulled, l, ino, n)
	r.New = true
	tx.addBehind(h, r)
}

// Renewed notes that an inode without local content has become another version, and where the
// remote has the one before.
func (tx Tx) Renewed(l table.Link, ino table.Ino, before *Past) {
	h := HeadOf(tx, l)
	r := About(Written, WhyPulled, l, ino, tx.Inode(ino))
	r.Before = before
	r.Prev, _ = ContentBehind(tx, ino, h.ID)
	tx.addBehind(h, r)
}

// Named notes that a file that had no name has one: with its content, on behalf of the content's
// writer.
func (tx Tx) Named(l table.Link, ino table.Ino, why string) {
	n := tx.Inode(ino)
	if by, oi := *tx.by, tx.k.o.Open.Of(tx.View, ino); !by.Known && oi != nil {
		*tx.by = oi.Writer(tx.View)
		defer func() { *tx.by = by }()
	}
	r := About(Written, why, l, ino, n)
	r.New, r.Birth = true, tx.k.o.Now().UnixNano()
	tx.expect(ino, tx.add(r), r)
}

// Version notes that the content of an inode is final.
func (tx Tx) Version(n *table.Inode, ino table.Ino, why string) {
	if len(n.Links) == 0 || !n.IsRegular() {
		return
	}
	h := HeadOf(tx, n.Links[0])
	prev, old := ContentBehind(tx, ino, h.ID)
	if old != nil && old.Gen == n.ContentVersion {
		return
	}
	if oi := tx.k.o.Open.Of(tx.View, ino); oi != nil && !tx.by.Known {
		*tx.by = oi.Writer(tx.View)
	}
	r := About(Written, why, n.Links[0], ino, n)
	r.Prev, r.New = prev, old == nil && IsOfHere(n)
	tx.notePast(r, old, prev, ino, n)
	tx.expect(ino, tx.addBehind(h, r), r)
}

// notePast notes where the remote has the previous content of an inode: in that content's record,
// or if there is none in the new one.
func (tx Tx) notePast(r, old *Record, prev uint64, ino table.Ino, n *table.Inode) {
	past := tx.k.pastOf(tx.View, ino, n, func(at uint64) bool { return at != n.ContentVersion && (old == nil || at == old.Gen) })
	if old == nil {
		r.Before = past
	} else if past != nil && old.Past == nil {
		old.Past = past
		Put(tx, prev, old)
	}
}

// Sent notes a new file of which a content version is about to be sent while its first writer has
// not closed it, or is just closing it: once the remote has it, no other fact tells that it was
// made locally.
func (tx Tx) Sent(ino table.Ino, contentVersion uint64) {
	if n := tx.Inode(ino); n != nil && n.ContentVersion == contentVersion && n.Writing && IsOfHere(n) {
		by := *tx.by
		tx.Version(n, ino, "written")
		*tx.by = by
	}
}

// expect has the worker look at a version that was noted.
func (tx Tx) expect(ino table.Ino, id uint64, r *Record) {
	tx.Later(func() { tx.k.expect(ino, expected{id, r.Gen, tx.k.o.Now().Add(keepPause)}) })
}

// Moved notes that an inode, or a directory, has another name, after it was set.
func (tx Tx) Moved(ino table.Ino, from, to table.Link, why string) {
	n := tx.Inode(ino)
	if n == nil {
		return
	}
	of, old := ContentOf(tx, ino, from)
	r := About(Moved, why, to, ino, n)
	at, _ := tx.LocalPath(from)
	r.From = &Place{Dir: from.Dir, Name: from.Name, Path: at.String()}
	r.New = old == nil && IsOfHere(n) && n.IsRegular()
	r.Of, r.Past = of, tx.k.PastOf(tx.View, ino, n)
	tx.add(r)
}

// Ended notes that a name is about to lose its inode, and has the content go to the history once
// nothing holds it. For a directory or a link it only notes.
func (tx Tx) Ended(l table.Link, ino table.Ino, why string) error {
	n := tx.Inode(ino)
	if n == nil {
		return tx.Err()
	}
	h := HeadOf(tx, l)
	of, old := ContentBehind(tx, ino, h.ID)
	r := About(Ended, why, l, ino, n)
	r.Prev, r.New, r.Past = of, old == nil && IsOfHere(n), tx.k.PastOf(tx.View, ino, n)
	moves := n.IsRegular() && n.State == table.Whole && n.Size > 0 && len(n.Links) == 1
	switch {
	case old != nil && old.Kept && old.Gen == n.ContentVersion:
		r.Of, moves = of, false
	case old != nil && why == WhyReplaced && tx.k.keptLately(tx.View, l) &&
		tx.k.o.Now().UnixNano()-old.Time < int64(keepPause) && !tx.k.actsAnew(tx.View, of, old):
		moves = false
	}
	number := tx.addBehind(h, r)
	if moves {
		if old != nil && old.Gen == n.ContentVersion {
			old.Of = number // it is the same content
			Put(tx, of, old)
		}
		tx.Set(QueueKey(ino), []byte(StoreID(number)))
		tx.k.keptNow(tx.View, l)
	}
	return nil
}

// Freed decides where content goes that nothing holds any more: into the history or away, once the
// disk has the table that says so.
func (tx Tx) Freed(ino table.Ino, n *table.Inode) files.DeferredUnlink {
	id, _ := strconv.ParseUint(string(tx.Get(QueueKey(ino))), 16, 64) // 0 for none
	r := Get(tx, id)
	if r == nil || r.Gen != n.ContentVersion { // or it was written after it lost its name
		tx.Set(QueueKey(ino), []byte(goesAway))
		return files.DeferredUnlink{Size: n.Blocks * 512}
	}
	r.Size = n.Size
	Keep(tx, id, r, id)
	return files.DeferredUnlink{Kept: id}
}

// Overwritten notes the remote's entry under a name that is about to be lost, and keeps the content
// of a file, which the inode ino without a name has on the disk (0: it is not kept), or the target
// of a symbolic link. The remote may lose the entry when Overwritten has returned without an error:
// the disk has all of it.
func (k *Keeper) Overwritten(l table.Link, info providers.Info, ino table.Ino, target string) error {
	r := &Record{Change: Ended, Why: whyOverwritten, Dir: l.Dir, Name: l.Name, Mode: modeOf(info), Target: target,
		Size: info.Size, Base: VersionText(info.Version), Stays: true,
		Past: &Past{Path: info.Locator.String(), Version: VersionText(info.Version), Size: info.Size}}
	var number uint64
	err := k.o.Update(func(tx Tx) error {
		number = tx.add(r)
		if ino != 0 {
			Keep(tx, number, r, number)
			tx.Set(QueueKey(ino), []byte(StoreID(number)))
		}
		return nil
	})
	if err == nil {
		err = k.o.Tree.Sync()
	}
	if ino == 0 {
		return err
	}
	if err == nil {
		err = k.o.Store.Keep(ino, StoreID(number))
	}
	if err != nil && number != 0 {
		err = errors.Join(err, k.notKept(number))
	}
	k.o.Store.Remove(ino)
	k.Removed(ino)
	return err
}

// modeOf is the mode of a remote entry, as far as the remote keeps one.
func modeOf(info providers.Info) uint32 {
	switch {
	case info.Kind == providers.KindSymlink:
		return syscall.S_IFLNK | 0o777
	case info.Attr.Valid.Has(providers.AttrMode):
		return syscall.S_IFREG | info.Attr.Mode
	case info.Attr.Valid.Has(providers.AttrExec) && info.Attr.Mode&0o100 != 0:
		return syscall.S_IFREG | 0o755
	}
	return syscall.S_IFREG | 0o644
}
