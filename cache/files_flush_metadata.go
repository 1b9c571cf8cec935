package cache

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// flushMetadata brings what was written to an open file into the table, in one commit:
// size, time, and that the content is in a new state. Nothing happens when
// nothing was written since the last time.
func (v *Volume) flushMetadata(ino table.Ino) error {
	oi := v.ifOpen(ino)
	if oi == nil {
		return nil
	}
	err := v.flush(oi, false)
	v.release(oi)
	return err
}

// flush is flushMetadata for a caller that holds the open inode. The intent to change ends with
// it, until the next change, unless it is to stay.
func (v *Volume) flush(oi *openInode, stays bool) error {
	held := oi.lock()
	defer held.unlock()
	if oi.f == nil {
		return nil
	}
	t := metadataFlush{oi: held, mapped: oi.mapped(), idle: !stays && oi.idle(), stamp: oi.stamp.Load()}
	count := oi.f.Writes() // waits for a write that is under way
	t.wrote = t.mapped || count != oi.seen
	quiet := !oi.unseen.Load() || oi.f.Quiet()
	locked := v.lock()
	n := locked.table.Inode(oi.ino)
	t.idle = t.idle && quiet && !oi.lingered
	ends := n != nil && n.Writing && t.idle && (oi.writers == 0 || t.wrote)
	locked.unlock()
	if n == nil || !t.wrote && t.stamp == 0 && !ends {
		if n == nil || !n.Writing {
			oi.intent.Store(false)
		}
		return nil
	}
	t.size = oi.f.Size()
	if t.wrote {
		t.blocks = oi.blocks()
	}
	err := v.update(func(v *Tx) error {
		v.noteFlushed(&t)
		return nil
	})
	switch {
	case err == nil:
		oi.seen = count
		oi.stamp.CompareAndSwap(t.stamp, 0)
	case t.mapped:
		oi.disk.Store(-1) // the next look finds it again
	}
	return err
}

// metadataFlush is what there is to take into the table.
type metadataFlush struct {
	oi            lockedInode
	wrote, mapped bool // bytes have changed; without our seeing it
	idle          bool // the intent to change ends
	stamp         int64
	size, blocks  int64
}

// noteFlushed takes it.
func (v *Tx) noteFlushed(t *metadataFlush) {
	oi := t.oi
	n := v.table.Edit(oi.ino)
	if n == nil {
		return
	}
	if t.wrote {
		if t.stamp == 0 {
			t.stamp = v.now()
		}
		v.light = v.differs(n)
		before, ctime := n.ContentVersion, n.Ctime
		stamp := table.Stamp(t.stamp)
		v.ContentChanged(oi.ino, t.size, stamp)
		n = v.table.Edit(oi.ino)
		n.Blocks, n.Ctime = t.blocks, table.Latest(ctime, stamp) // as stat has shown it
		if !t.mapped && !oi.passed.Load() && v.KernelPages(oi.ino) == before {
			v.SetKernelPages(oi.ino, n.ContentVersion) // the kernel's pages went along
		}
		v.final(oi.ino, n)
	} else if t.stamp != 0 {
		stamp, ctime := table.Stamp(t.stamp), n.Ctime
		v.AttrChanged(oi.ino)
		n = v.table.Edit(oi.ino)
		n.Mtime, n.Ctime = stamp, table.Latest(ctime, stamp)
	}
	if n.Writing && t.idle {
		v.setWriting(oi.ino, n, false)
		if v.noting[oi.ino] == n.ContentVersion {
			n.Synced = n.ContentVersion
		}
		if !t.wrote && history.IsOfHere(n) {
			v.recordVersion(n, oi.ino, "written") // a new file, and empty
		}
	}
}

// differs reports whether every name of an inode is known to differ from the backend
// already.
func (v *View) differs(n *table.Inode) bool {
	for _, l := range n.Links {
		if !v.IsDirty(l) {
			return false
		}
	}
	return len(n.Links) > 0
}

// final tells whoever wants to know of a new state of content.
func (v *Tx) final(ino table.Ino, n *table.Inode) {
	v.recordVersion(n, ino, "written")
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

// changed notes the time of a change that was just made.
func (oi *openInode) changed(now int64) {
	oi.stamp.Store(now)
	if oi.passed.Load() {
		oi.disk.Store(oi.f.Mtime())
	}
}

// isTouched reports whether content was changed, or is being, since the table took
// it.
func (oi *openInode) isTouched() bool { return oi.changing.Load() > 0 || oi.stamp.Load() != 0 }

// blocks is what stat shows of the space: of content that is not all here, what
// it will take.
func (oi *openInode) blocks() int64 {
	if oi.f.Whole() {
		return oi.f.Blocks()
	}
	return max(oi.f.Blocks(), (oi.f.Size()+511)/512)
}

// mapped reports whether the content file has changed behind our back: while
// the kernel reads it itself, who maps it for writing does so too. The disk
// moves the file's time on the first store to a page that it has written, so
// the pages are written after each look.
func (oi *openInode) mapped() bool {
	if !oi.passed.Load() {
		return false
	}
	now := oi.f.Mtime()
	if oi.unseen.Load() {
		const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
		_ = unix.SyncFileRange(oi.f.Fd(), 0, 0, all)
	}
	return oi.disk.Swap(now) != now
}

// tellsTime reports whether the disk says so when a mapping of a file changes
// it: one in memory does not.
func tellsTime(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Type != unix.TMPFS_MAGIC
}

// lingerFor is how often we look whether a mapping has ended.
const lingerFor = time.Second

// linger stays with a file whose last writer has closed it while the content file
// may still be mapped for writing: the stores come to the disk, not to us. The intent
// to change stays on record meanwhile. It reports whether somebody stays, in place
// of who asks. When nobody has it mapped, what was stored since the last look is in
// the table.
func (v *Volume) linger(oi *openInode) (stays bool, err error) {
	if oi.f == nil {
		return false, nil
	}
	if oi.f.Quiet() {
		return false, v.flush(oi, false)
	}
	locked := v.lock()
	stays = !oi.lingered && !locked.closed
	oi.lingered = oi.lingered || stays
	if stays {
		v.background(func() { v.lingers(oi) })
	}
	locked.unlock()
	return stays, nil
}

// lingers takes what is stored through mappings, until there is none.
func (v *Volume) lingers(oi *openInode) {
	for over := false; !over; {
		if !oi.f.Quiet() {
			if v.ctx.Err() != nil {
				break
			}
			oi.unseen.Store(true)
			if v.pause(v.ctx, lingerFor) == nil {
				_ = v.flush(oi, false)
			}
			continue
		}
		locked := v.lock()
		if over = oi.writers > 0 || !oi.unseen.Load(); over {
			oi.lingered = false
		}
		if oi.writers == 0 {
			oi.unseen.Store(false) // and once more: somebody may have come and gone
		}
		locked.unlock()
	}
	_ = v.flush(oi, false)
	v.release(oi)
}
