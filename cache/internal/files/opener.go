package files

import (
	"context"
	"errors"
	iofs "io/fs"
	"log/slog"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// ErrNoInode says that there is no inode of this number any more.
var ErrNoInode = errors.New("no such inode")

// A Tx is a transaction of a working copy that is about the content of an open inode.
type Tx interface {
	Tree() *tree.Tx
	// Light says that the transaction records the state of content alone, which the disk
	// need not have for an fsync.
	Light()
	// Written tells of a new state of content: for the history, and for callers that wait
	// for new content.
	Written(ino table.Ino, n *table.Inode)
	// Unwritten says that the dirty intent of an inode ends, and nothing was written.
	Unwritten(ino table.Ino, n *table.Inode)
}

// Volume is the rest of a working copy, as open files use it.
type Volume interface {
	Update(do func(Tx) error) error
	// Closed says that no program writes an inode any more; the table has all changes,
	// unless their flush failed.
	Closed(v *tree.View, ino table.Ino)
	// Abandon forgets an inode without a name that is not in use any more.
	Abandon(ino table.Ino)
}

// Keeper keeps the state of content that is about to change, as long as it can.
type Keeper interface {
	// KeepForSet keeps it for the change set under way. isCurrent reports whether that is
	// still the one under way, or none is.
	KeepForSet(oi LockedInode) (isCurrent func(*tree.View) bool)
	// KeepBefore keeps it for the history, and for an upload of the changes alone.
	KeepBefore(oi LockedInode)
}

// OpenerOptions are an Opener's settings and dependencies.
type OpenerOptions struct {
	Tree     *tree.Tree
	Set      *OpenSet
	Store    *content.Store
	Hydrator *Hydrator
	Eviction *Eviction
	Unlinks  *DeferredUnlinks
	Syncs    *TableSync
	Volume   Volume
	Keeper   Keeper
	Now      func() time.Time

	Context context.Context // ends with the working copy
	// Go runs f in the background, unless the working copy has ended: then it is false.
	Go    func(v *tree.View, f func()) bool
	Pause func(ctx context.Context, d time.Duration) error
	Log   *slog.Logger
}

// Opener opens the content of inodes.
type Opener struct {
	o     OpenerOptions
	notes syncNotes
}

// NewOpener makes one that has opened nothing.
func NewOpener(o OpenerOptions) *Opener { return &Opener{o: o} }

// Use is the purpose for which content is opened.
type Use uint8

// Uses of content.
const (
	ForUs       Use = iota // by us
	ForPrefetch            // by us too, before any program asks for it
	ForReading             // by a program, whose open may begin anew until it has seen a byte
	ForWriting
)

// Open opens the content of an inode. Missing content becomes a file without blocks, which
// it fetches when they are read. A writer's dirty intent is committed before Open returns.
func (o *Opener) Open(ino table.Ino, use Use) (*OpenInode, error) {
	oi, err := o.hold(ino, use)
	if err != nil {
		return nil, err
	}
	held := oi.lock()
	if oi.f == nil {
		err = o.openContent(held)
	}
	if err == nil && use == ForWriting {
		err = o.beginWriting(held)
	}
	held.unlock()
	if err == nil {
		return oi, nil
	}
	_ = o.Close(oi, use == ForWriting)
	return nil, err
}

// IfOpen is Open for content that is in use already: nil when it is not. The content itself
// may still be opening.
func (o *Opener) IfOpen(ino table.Ino) *OpenInode {
	v := o.o.Tree.Lock()
	defer o.o.Tree.Unlock()
	oi := o.o.Set.Of(v, ino)
	if oi != nil {
		oi.Retain(v)
	}
	return oi
}

// Release undoes one Open that was not for writing.
func (o *Opener) Release(oi *OpenInode) { _ = o.Close(oi, false) }

// hold counts one more user of an inode's content.
func (o *Opener) hold(ino table.Ino, use Use) (*OpenInode, error) {
	v := o.o.Tree.Lock()
	defer o.o.Tree.Unlock()
	n := v.Inode(ino)
	switch {
	case n == nil:
		return nil, ErrNoInode
	case n.IsDir():
		return nil, syscall.EISDIR
	case !n.IsRegular():
		return nil, syscall.ENXIO
	}
	oi := o.o.Set.Of(v, ino)
	if oi == nil || oi.isOutdated(n) {
		oi = &OpenInode{Ino: ino, unread: n.State == table.None, version: n.ContentVersion}
		o.o.Set.all[ino] = oi
	}
	oi.opens++
	oi.unread = oi.unread && (use == ForReading || use == ForPrefetch)
	if use == ForWriting {
		oi.addWriter()
	}
	return oi, nil
}

// MarkRead records that a program is about to see this content, so that a later pull must
// not replace it in place. It reports false when the content is outdated.
func (o *Opener) MarkRead(oi *OpenInode) bool {
	v := o.o.Tree.Lock()
	defer o.o.Tree.Unlock()
	if oi.isOutdated(v.Inode(oi.Ino)) {
		return false
	}
	oi.unread = false
	return true
}

// BecomeWriter makes a writer of a caller that opened content to read it.
func (o *Opener) BecomeWriter(oi *OpenInode) error {
	o.o.Tree.Lock()
	oi.addWriter()
	o.o.Tree.Unlock()
	held := oi.lock()
	defer held.unlock()
	return o.beginWriting(held)
}

// beginWriting commits a writer's dirty intent.
func (o *Opener) beginWriting(oi LockedInode) error {
	if oi.unseen.Load() {
		oi.f.Blind()
	}
	return o.beginDirty(oi)
}

// openContent opens the content file, or makes one.
func (o *Opener) openContent(oi LockedInode) error {
	n, path, err := o.peek(oi.Ino)
	if err != nil {
		return err
	}
	var f *content.File
	if n.State == table.None && o.o.Unlinks.Has(oi.Ino) {
		o.o.Unlinks.Run() // its deleted content goes before it gets other content
	}
	if n.State != table.None {
		f, err = o.o.Store.Open(oi.Ino)
		switch missing := errors.Is(err, iofs.ErrNotExist); {
		case missing && n.State == table.Partial:
			f, err = nil, nil // none of it came
		case missing && o.isClean(oi.Ino):
			n.State = table.None // it was evicted, and a loss of power took the record of that
			f, err = nil, nil
		}
		if err != nil {
			return err
		}
	}
	switch {
	case f != nil:
		if !f.Whole() {
			f.SetSource(o.o.Hydrator.Source(oi.Ino, tree.MissingVersion(&n)))
		}
	case n.Size == 0:
		f, err = o.blank(oi)
	default:
		f, err = o.sparse(oi, &n, path)
	}
	if err != nil {
		return err
	}
	o.o.Tree.Lock()
	oi.f = f
	o.o.Tree.Unlock()
	oi.seen = f.Writes()
	return nil
}

// peek is a copy of the table's record of an inode, and its path for the content file.
func (o *Opener) peek(ino table.Ino) (n table.Inode, path string, err error) {
	err = o.o.Tree.View(func(v *tree.View) error {
		p := v.Inode(ino)
		if p == nil {
			return ErrNoInode
		}
		n = *p
		at, _ := v.LocalPathOf(ino)
		path = at.String()
		return nil
	})
	return n, path, err
}

// blank makes content for an empty file.
func (o *Opener) blank(oi LockedInode) (*content.File, error) {
	f, err := o.o.Store.Create(oi.Ino, "")
	if err != nil {
		return nil, err
	}
	err = o.o.Volume.Update(func(t Tx) error {
		n := t.Tree().Edit(oi.Ino)
		if n == nil {
			return ErrNoInode
		}
		n.State, n.Blocks = table.Whole, 0
		return nil
	})
	if err != nil {
		f.Release()
		return nil, err
	}
	return f, nil
}

// sparse makes content without local blocks, of the version that the remote has.
func (o *Opener) sparse(oi LockedInode, was *table.Inode, path string) (*content.File, error) {
	origin := was.Origin
	if was.State == table.None {
		err := o.o.Volume.Update(func(t Tx) error {
			now, ok := t.Tree().OriginOf(oi.Ino)
			if !ok {
				return ErrNoInode // its only copy was removed on the remote
			}
			if t.Tree().Inode(oi.Ino).ContentVersion != was.ContentVersion {
				return ErrOutdated
			}
			n := t.Tree().Edit(oi.Ino)
			n.State, n.Origin = table.Partial, now
			origin = now
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	f, err := o.o.Store.Sparse(oi.Ino, path, was.Size, origin.Digest)
	if err != nil {
		return nil, err
	}
	f.SetSource(o.o.Hydrator.Source(oi.Ino, origin.ContentVersion))
	return f, nil
}

// isClean reports whether the remote has the content of an inode.
func (o *Opener) isClean(ino table.Ino) bool {
	v := o.o.Tree.Lock()
	defer o.o.Tree.Unlock()
	_, ok := v.OriginOf(ino)
	return ok
}

// Close undoes one Open. The changes of the last writer are in the table afterwards.
func (o *Opener) Close(oi *OpenInode, writer bool) error {
	var err error
	if writer {
		o.o.Tree.Lock()
		oi.writers--
		o.o.Tree.Unlock()
		err = o.Flush(oi, false)
	}
	v := o.o.Tree.Lock()
	if writer && oi.writers == 0 {
		o.o.Volume.Closed(v, oi.Ino)
	}
	last := oi.opens == 1
	n := v.Inode(oi.Ino)
	arrived := last && n != nil && oi.f != nil && n.State == table.Partial && oi.f.Whole() && !oi.isOutdated(n)
	mapped := (last || writer && oi.writers == 0) && oi.unseen.Load() && !oi.lingered
	o.o.Tree.Unlock()
	if mapped {
		stays, merr := o.linger(oi)
		if err = errors.Join(err, merr); stays {
			return err
		}
	}
	if arrived {
		err = errors.Join(err, o.arrived(oi))
	}
	o.drop(oi)
	return err
}

// drop takes one user away, and closes the open inode with the last.
func (o *Opener) drop(oi *OpenInode) {
	v := o.o.Tree.Lock()
	oi.opens--
	last := oi.opens == 0
	if last && o.o.Set.Of(v, oi.Ino) == oi {
		delete(o.o.Set.all, oi.Ino)
		o.o.Eviction.Weigh(v, oi.Ino)
	}
	gone := last && v.IsForsaken(oi.Ino)
	o.o.Tree.Unlock()
	if last && oi.f != nil {
		oi.f.Release()
	}
	if gone {
		o.o.Volume.Abandon(oi.Ino)
	}
}

// arrived notes that all of the content is local.
func (o *Opener) arrived(oi *OpenInode) error {
	blocks := oi.f.Blocks()
	return o.o.Volume.Update(func(t Tx) error {
		if n := t.Tree().Edit(oi.Ino); n != nil && n.State == table.Partial {
			n.State, n.Blocks = table.Whole, blocks
		}
		return nil
	})
}

// Make opens empty content for an inode that is to be. Enter makes it one of the open
// inodes, Discard undoes all. The file is made without a lock.
func (o *Opener) Make(ino table.Ino) (*OpenInode, error) {
	f, err := o.o.Store.Create(ino, "")
	if err != nil {
		return nil, err
	}
	return &OpenInode{Ino: ino, f: f}, nil
}

// Enter is part of the transaction that makes the inode, with a dirty intent, for a caller
// that writes or not.
func (o *Opener) Enter(_ *tree.Tx, oi *OpenInode, writes bool, by Caller) {
	oi.opens = 1
	if writes {
		oi.writers = 1
	}
	oi.writer = by
	o.o.Set.all[oi.Ino] = oi
	oi.intent.Store(true)
}

// Discard undoes Make, and Enter if that happened.
func (o *Opener) Discard(oi *OpenInode) {
	o.o.Tree.Lock()
	delete(o.o.Set.all, oi.Ino)
	o.o.Tree.Unlock()
	oi.f.Release()
	o.o.Store.Remove(oi.Ino)
}
