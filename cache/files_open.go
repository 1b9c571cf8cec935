package cache

import (
	"context"
	"errors"
	iofs "io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

// openInode is an inode whose content somebody uses: programs, and ourselves
// while we send, keep or evict it. One for all of them.
type openInode struct {
	ino table.Ino

	// mu orders the opening of the content, the dirty intent, and the taking of what was
	// written into the table. Reads and writes do not take it. It comes before the
	// volume's lock.
	mu   sync.Mutex
	f    *content.File // nil until opened; set under mu and the volume's lock
	seen uint64        // f.Writes() that the table has; guarded by mu

	opens, writers int // guarded by the volume's lock

	// untold says that none of this content was shown to anybody: whoever has it open
	// still waits for the open, to read. A pull may then give the inode another version,
	// with another gen, and the opens begin anew. gen is what the inode was at. Guarded
	// by the volume's lock.
	untold bool
	gen    uint64

	by who // the last who opened it for writing; guarded by the volume's lock

	// stamp is the time of the last change, 0 when the table has it.
	stamp atomic.Int64

	// intent says that the table knows that content may change. A close ends
	// it in the commit that takes what was written, so that the release need
	// make none, and the next change begins it anew. Who changes content counts
	// itself in changing before it looks at intent; who ends it looks at
	// changing afterwards.
	intent   atomic.Bool
	changing atomic.Int32

	passed   atomic.Bool  // the kernel may map the content file itself
	disk     atomic.Int64 // the content file's time at our last look, if so
	unseen   atomic.Bool  // a writer may have mapped it
	lingered bool         // somebody waits for mappings to end; guarded by the volume's lock
}

// lockedInode is an openInode for who holds its lock, mu.
type lockedInode struct{ *openInode }

func (oi *openInode) lock() lockedInode {
	oi.mu.Lock()
	return lockedInode{oi}
}

func (oi lockedInode) unlock() { oi.mu.Unlock() }

// acquire opens the content of an inode, for those who only read it. Content
// that is not here becomes a file without blocks, which it fetches when they
// are read.
func (v *Volume) acquire(ino table.Ino) (*openInode, error) {
	return v.openContent(ino, forUs)
}

// ifOpen is acquire for who wants nothing of content that nobody has open: nil
// then.
func (v *Volume) ifOpen(ino table.Ino) *openInode {
	locked := v.lock()
	defer locked.unlock()
	oi := locked.open[ino]
	if oi != nil {
		oi.opens++
	}
	return oi
}

// release undoes one acquire.
func (v *Volume) release(oi *openInode) { _ = v.closeContent(oi, false) }

// user is what somebody opens content for.
type user uint8

const (
	forUs      user = iota
	forAhead        // us too, before anybody asks for it
	forReading      // a program, whose open may begin anew until it is told
	forWriting
)

// openContent opens the content of an inode. A writer's intent to change is
// committed before it returns.
func (v *Volume) openContent(ino table.Ino, u user) (*openInode, error) {
	oi, err := v.hold(ino, u)
	if err != nil {
		return nil, err
	}
	held := oi.lock()
	if oi.f == nil {
		err = v.openFile(held)
	}
	if err == nil && u == forWriting {
		err = v.beginWriting(held)
	}
	held.unlock()
	if err == nil {
		return oi, nil
	}
	_ = v.closeContent(oi, u == forWriting)
	return nil, err
}

// unasked is content for who fetches it before a program asks.
type unasked struct{ v *Volume }

var _ files.Unasked = unasked{}

// MayPrefetch implements files.Unasked.
func (u unasked) MayPrefetch() bool { return !u.v.held.closing && !u.v.belief.IsFailing() }

// IsOpen implements files.Unasked.
func (u unasked) IsOpen(ino table.Ino) bool { return u.v.held.open[ino] != nil }

// FetchUnasked implements files.Unasked.
func (u unasked) FetchUnasked(ctx context.Context, ino table.Ino) error {
	oi, err := u.v.openContent(ino, forAhead)
	if err != nil {
		return err
	}
	err = oi.f.FetchAhead(ctx, u.v.prefetch)
	if cerr := u.v.closeContent(oi, false); err == nil {
		err = cerr
	}
	return err
}

// Unread implements files.Unasked.
func (u unasked) Unread(ino table.Ino) { u.v.store.Unread(ino) }

// hold counts one more user of an inode's content.
func (v *Volume) hold(ino table.Ino, u user) (*openInode, error) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	switch {
	case n == nil:
		return nil, fs.ErrStale
	case n.IsDir():
		return nil, syscall.EISDIR
	case !n.IsRegular():
		return nil, syscall.ENXIO
	}
	oi := locked.open[ino]
	if oi == nil || oi.outdated(n) {
		oi = &openInode{ino: ino, untold: n.State == table.None, gen: n.ContentVersion}
		locked.open[ino] = oi
	}
	oi.opens++
	oi.untold = oi.untold && (u == forReading || u == forAhead)
	if u == forWriting {
		oi.writer()
	}
	return oi, nil
}

// outdated reports whether a pull gave an inode another version while the opens of this
// one were waiting for their first bytes.
func (oi *openInode) outdated(n *table.Inode) bool {
	return oi.untold && (n == nil || n.ContentVersion != oi.gen)
}

// tell has content become what somebody saw, from where on a pull leaves it as
// it is. It reports false when it is outdated.
func (v *Volume) tell(oi *openInode) bool {
	locked := v.lock()
	defer locked.unlock()
	if oi.outdated(locked.table.Inode(oi.ino)) {
		return false
	}
	oi.untold = false
	return true
}

// openFile opens the content file, or makes one.
func (v *Volume) openFile(oi lockedInode) error {
	n, path, err := v.peek(oi.ino)
	if err != nil {
		return err
	}
	var f *content.File
	if n.State == table.None && v.unlinks.has(oi.ino) {
		v.unlinkDue() // what it had goes before it gets other content
	}
	if n.State != table.None {
		f, err = v.store.Open(oi.ino)
		switch missing := errors.Is(err, iofs.ErrNotExist); {
		case missing && n.State == table.Partial:
			f, err = nil, nil // nothing of it came
		case missing && v.isClean(oi.ino):
			n.State = table.None // it was given up, and a loss of power took the record of that
			f, err = nil, nil
		}
		if err != nil {
			return err
		}
	}
	switch {
	case f != nil:
		if !f.Whole() {
			f.SetSource(v.hydrator.Source(oi.ino, tree.MissingVersion(&n)))
		}
	case n.Size == 0:
		f, err = v.blank(oi)
	default:
		f, err = v.sparse(oi, &n, path)
	}
	if err != nil {
		return err
	}
	locked := v.lock()
	oi.f = f
	locked.unlock()
	oi.seen = f.Writes()
	return nil
}

// peek is a copy of what the table has of an inode, and its path for the
// content file.
func (v *Volume) peek(ino table.Ino) (n table.Inode, path string, err error) {
	err = v.view(func(v *View) error {
		p, err := v.inode(fs.Ino(ino))
		if err != nil {
			return err
		}
		n = *p
		at, _ := v.LocalPathOf(ino)
		path = at.String()
		return nil
	})
	return n, path, err
}

// blank makes content for an empty file.
func (v *Volume) blank(oi lockedInode) (*content.File, error) {
	f, err := v.store.Create(oi.ino, "")
	if err != nil {
		return nil, err
	}
	err = v.update(func(v *Tx) error {
		n := v.table.Edit(oi.ino)
		if n == nil {
			return fs.ErrStale
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

// sparse makes content of which nothing is here yet, of the version that the
// backend has.
func (v *Volume) sparse(oi lockedInode, was *table.Inode, path string) (*content.File, error) {
	origin := was.Origin
	if was.State == table.None {
		err := v.update(func(v *Tx) error {
			o, ok := v.OriginOf(oi.ino)
			if !ok {
				return fs.ErrStale // its only copy was removed at the backend
			}
			if v.table.Inode(oi.ino).ContentVersion != was.ContentVersion {
				return translate(files.ErrOutdated)
			}
			n := v.table.Edit(oi.ino)
			n.State, n.Origin = table.Partial, o
			origin = o
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	f, err := v.store.Sparse(oi.ino, path, was.Size, origin.Digest)
	if err != nil {
		return nil, err
	}
	f.SetSource(v.hydrator.Source(oi.ino, origin.ContentVersion))
	return f, nil
}

// isClean reports whether the backend has what an inode's content is.
func (v *Volume) isClean(ino table.Ino) bool {
	locked := v.lock()
	defer locked.unlock()
	_, ok := locked.OriginOf(ino)
	return ok
}

// closeContent undoes one openContent. What the last writer leaves is in the
// table afterwards.
func (v *Volume) closeContent(oi *openInode, writer bool) error {
	var err error
	if writer {
		locked := v.lock()
		oi.writers--
		locked.unlock()
		err = v.flush(oi, false)
	}
	locked := v.lock()
	if writer && oi.writers == 0 && v.pending.IsUnsaved(oi.ino) {
		v.pending.Open() // a new name without content: its close told nobody
		v.pending.Kick()
	}
	last := oi.opens == 1
	n := locked.table.Inode(oi.ino)
	arrived := last && n != nil && oi.f != nil && n.State == table.Partial && oi.f.Whole() && !oi.outdated(n)
	mapped := (last || writer && oi.writers == 0) && oi.unseen.Load() && !oi.lingered
	locked.unlock()
	if mapped {
		stays, merr := v.linger(oi)
		if err = errors.Join(err, merr); stays {
			return err
		}
	}
	if arrived {
		err = errors.Join(err, v.arrived(oi))
	}
	locked = v.lock()
	oi.opens--
	last = oi.opens == 0
	if last && locked.open[oi.ino] == oi {
		delete(locked.open, oi.ino)
		v.eviction.Weigh(locked.View, oi.ino)
	}
	gone := last && locked.IsForsaken(oi.ino)
	locked.unlock()
	if last && oi.f != nil {
		oi.f.Release()
	}
	if gone {
		v.abandon(oi.ino)
	}
	return err
}

// arrived notes that all of the content is here.
func (v *Volume) arrived(oi *openInode) error {
	blocks := oi.f.Blocks()
	return v.update(func(v *Tx) error {
		if n := v.table.Edit(oi.ino); n != nil && n.State == table.Partial {
			n.State, n.Blocks = table.Whole, blocks
		}
		return nil
	})
}

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
	u := forReading
	if writes(flags) {
		if err := v.fetchAttrsToWrite(op, ino); err != nil {
			return nil, false, err
		}
		if flags&syscall.O_TRUNC != 0 {
			u = forWriting
		}
	}
	oi, err := v.openContent(ino, u)
	if err != nil {
		return nil, errors.Is(err, files.ErrOutdated), err
	}
	f = &file{v: v, oi: oi, flags: flags}
	if u == forWriting {
		v.writes(oi, op)
		err = f.truncate(op, 0)
	} else {
		v.prefetch.Opened(oi.ino, oi.f.Whole())
		err = f.begin(op)
	}
	if outdated = !v.tell(oi); outdated && err == nil {
		err = translate(files.ErrOutdated)
	}
	if err == nil && writes(flags) && u == forReading {
		u = forWriting
		err = v.becomeWriter(oi, op)
	}
	if err != nil {
		_ = v.closeContent(oi, u == forWriting)
		return nil, outdated, err
	}
	return f, false, nil
}

// becomeWriter makes a writer of who opened content to read it.
func (v *Volume) becomeWriter(oi *openInode, op *fs.Op) error {
	locked := v.lock()
	oi.writer()
	locked.unlock()
	held := oi.lock()
	err := v.beginWriting(held)
	held.unlock()
	if err == nil {
		v.writes(oi, op)
	}
	return err
}

// writer counts one more writer.
func (oi *openInode) writer() {
	oi.writers++
	if oi.passed.Load() {
		oi.unseen.Store(true)
	}
}

// beginWriting commits a writer's intent.
func (v *Volume) beginWriting(oi lockedInode) error {
	if oi.unseen.Load() {
		oi.f.Blind()
	}
	return v.beginDirty(oi)
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
	n := locked.table.Inode(oi.ino)
	o.KeepCache = locked.KernelPages(oi.ino) == n.ContentVersion
	locked.SetKernelPages(oi.ino, n.ContentVersion)
	o.NewAttr = locked.HasOutdatedAttributes(oi.ino)
	pass := !f.changes() && oi.writers == 0 && !n.Writing && oi.f.Whole()
	locked.unlock()
	if !pass {
		return o
	}
	if fd := oi.f.Fd(); fd >= 0 {
		held := oi.lock()
		if !oi.passed.Load() && tellsTime(fd) {
			oi.disk.Store(oi.f.Mtime())
			locked = v.lock()
			oi.passed.Store(oi.writers == 0) // whoever comes later knows of it
			locked.unlock()
		}
		held.unlock()
		if oi.passed.Load() {
			o.Backing, o.PassRead = fd, true
		}
	}
	return o
}
