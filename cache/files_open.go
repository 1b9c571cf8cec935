package cache

import (
	"context"
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

func newOpener(v *Volume) *files.Opener {
	return files.NewOpener(files.OpenerOptions{
		Tree: v.tree, Set: v.held.open, Store: v.store, Hydrator: v.hydrator, Eviction: v.eviction, Unlinks: v.unlinks, Syncs: v.tableSync,
		Volume: openFiles{v}, Keeper: openFiles{v}, Now: v.o.Now, Log: v.o.Log, Context: v.ctx, Pause: v.pause,
		Go: func(_ *tree.View, f func()) bool {
			if v.held.closed {
				return false
			}
			v.background(f)
			return true
		},
	})
}

// openFiles is a volume as its open files need it.
type openFiles struct{ v *Volume }

// Update implements files.Volume.
func (o openFiles) Update(do func(files.Tx) error) error {
	return o.v.update(func(v *Tx) error { return do(contentTx{v}) })
}

// Closed implements files.Volume.
func (o openFiles) Closed(_ *tree.View, ino table.Ino) {
	if o.v.pending.IsUnsaved(ino) {
		o.v.pending.Open() // a new name without content: its close told nobody
		o.v.pending.Kick()
	}
}

// Abandon implements files.Volume.
func (o openFiles) Abandon(ino table.Ino) { o.v.abandon(ino) }

// KeepForSet implements files.Keeper.
func (o openFiles) KeepForSet(oi files.LockedInode) (isCurrent func(*tree.View) bool) {
	return o.v.kept.KeepState(oi)
}

// KeepBefore implements files.Keeper.
func (o openFiles) KeepBefore(oi files.LockedInode) {
	o.v.history.Before(oi.Ino)
	o.v.exec.Follow(oi)
}

// contentTx is a transaction about the content of an open inode.
type contentTx struct{ v *Tx }

// Tree implements files.Tx.
func (t contentTx) Tree() *tree.Tx { return t.v.Tx }

// Light implements files.Tx.
func (t contentTx) Light() { t.v.light = true }

// Written implements files.Tx.
func (t contentTx) Written(ino table.Ino, n *table.Inode) { t.v.final(ino, n) }

// Unwritten implements files.Tx. A new file, and empty, is a version too.
func (t contentTx) Unwritten(ino table.Ino, n *table.Inode) {
	if history.IsOfHere(n) {
		t.v.notes.Version(n, ino, "written")
	}
}

// final tells whoever wants to know of a new state of content.
func (v *Tx) final(ino table.Ino, n *table.Inode) {
	v.notes.Version(n, ino, "written")
	for _, l := range n.Links {
		v.wrote(l)
	}
	if len(n.Links) == 0 && n.LostName != nil {
		v.orphanChanged(ino)
	}
	v.place(ino)
}

// place has the content file of an inode carry its path, for the time when there is no
// table.
func (v *View) place(ino table.Ino) {
	if n := v.table.Inode(ino); n.State == table.None || len(n.Links) == 0 {
		return
	}
	if at, ok := v.LocalPathOf(ino); ok {
		v.store.SetPath(ino, at.String())
	}
}

// acquire opens the content of an inode for us, until opener.Release.
func (v *Volume) acquire(ino table.Ino) (*files.OpenInode, error) {
	return v.openContent(ino, files.ForUs)
}

// openContent opens the content of an inode, until opener.Close.
func (v *Volume) openContent(ino table.Ino, use files.Use) (*files.OpenInode, error) {
	oi, err := v.opener.Open(ino, use)
	return oi, translate(err)
}

// unasked is content for who fetches it before a program asks.
type unasked struct{ v *Volume }

var _ files.Unasked = unasked{}

// MayPrefetch implements files.Unasked.
func (u unasked) MayPrefetch(*tree.View) bool { return !u.v.held.closing && !u.v.belief.IsFailing() }

// FetchUnasked implements files.Unasked.
func (u unasked) FetchUnasked(ctx context.Context, ino table.Ino) error {
	oi, err := u.v.openContent(ino, files.ForPrefetch)
	if err != nil {
		return err
	}
	err = oi.Content().FetchAhead(ctx, u.v.prefetch)
	if cerr := u.v.opener.Close(oi, false); err == nil {
		err = cerr
	}
	return err
}

// Unread implements files.Unasked.
func (u unasked) Unread(ino table.Ino) { u.v.store.Unread(ino) }

// openTries is how often an open begins anew because the backend has another
// version before the first bytes of the last came.
const openTries = 16

// Open implements fs.Volume. The kernel looks a name up again for one
// [fs.ErrStale] of an open, and tells the program the next one: so an inode of
// which nothing was shown is brought up to date instead.
func (v *Volume) Open(op *fs.Op, ino fs.Ino, flags uint32) (fs.Opened, error) {
	i := table.Ino(ino)
	if err := v.freshen(op, i, shows(flags)); err != nil {
		return fs.Opened{}, err
	}
	for try := 1; ; try++ {
		f, outdated, err := v.openOnce(op, i, flags)
		switch {
		case err == nil:
			return v.opened(f), nil
		case !outdated || try == openTries:
			return fs.Opened{}, err
		}
	}
}

// shows reports whether a file that is opened shows what was in it, or goes on from
// there.
func shows(flags uint32) bool {
	return flags&syscall.O_TRUNC == 0 && (flags&syscall.O_ACCMODE != syscall.O_WRONLY || flags&syscall.O_APPEND != 0)
}

// openOnce opens an inode for a program and has its first bytes come. Outdated
// says that the inode has another version now, so that it is to be tried again:
// who opens it to write what is there is a reader until then, because nobody has
// seen or changed a byte.
func (v *Volume) openOnce(op *fs.Op, ino table.Ino, flags uint32) (f *file, outdated bool, err error) {
	use := files.ForReading
	if writes(flags) {
		if err := v.fetchAttrsToWrite(op, ino); err != nil {
			return nil, false, err
		}
		if flags&syscall.O_TRUNC != 0 {
			use = files.ForWriting
		}
	}
	oi, err := v.openContent(ino, use)
	if err != nil {
		return nil, errors.Is(err, files.ErrOutdated), err
	}
	f = &file{v: v, oi: oi, flags: flags}
	if use == files.ForWriting {
		v.writes(oi, op)
		err = f.truncate(op, 0)
	} else {
		v.prefetch.Opened(ino, oi.Content().Whole())
		err = f.begin(op)
	}
	if outdated = !v.opener.MarkRead(oi); outdated && err == nil {
		err = translate(files.ErrOutdated)
	}
	if err == nil && writes(flags) && use == files.ForReading {
		use = files.ForWriting
		if err = translate(v.opener.BecomeWriter(oi)); err == nil {
			v.writes(oi, op)
		}
	}
	if err != nil {
		_ = v.opener.Close(oi, use == files.ForWriting)
		return nil, outdated, err
	}
	return f, false, nil
}

// writes reports whether an open can change content.
func writes(flags uint32) bool {
	return flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
}

// opened says what the kernel may do with an open file. Pages that it has are
// right when the content is in the state of the last open, or has since been
// changed through those pages only. Of an inode that became another version while
// the kernel had it, its size may be that of the one before: the notice of that may
// still be on its way, or have come before the answer that it was to correct, and
// reads would end there. So it asks anew, at each open until it forgets the inode.
func (v *Volume) opened(f *file) fs.Opened {
	oi := f.oi
	o := fs.Opened{File: f, NoFlush: !f.changes()}
	locked := v.lock()
	n := locked.table.Inode(oi.Ino)
	o.KeepCache = locked.KernelPages(oi.Ino) == n.ContentVersion
	locked.SetKernelPages(oi.Ino, n.ContentVersion)
	o.NewAttr = locked.HasOutdatedAttributes(oi.Ino)
	pass := !f.changes() && !n.Writing && oi.MayPass(locked.View)
	locked.unlock()
	if pass {
		if fd, ok := v.opener.PassThrough(oi); ok {
			o.Backing, o.PassRead = fd, true
		}
	}
	return o
}
