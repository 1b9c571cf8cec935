package files

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Content that is passed through the kernel reads by itself, from the content file, and so a
// program that maps it for writing stores to that file without our seeing it. The time of
// the file says that it did, and a lease whether it still can.

// MayPass reports whether nothing is in the way of having the kernel read the content
// itself: all of it is local, and no program writes it.
func (oi *OpenInode) MayPass(*tree.View) bool { return oi.writers == 0 && oi.f.Whole() }

// PassThrough gives the descriptor of the content file, for the kernel to read; false when
// it cannot.
func (o *Opener) PassThrough(oi *OpenInode) (fd int, ok bool) {
	if fd = oi.f.Fd(); fd < 0 {
		return fd, false
	}
	held := oi.lock()
	if !oi.passed.Load() && tellsTime(fd) {
		oi.disk.Store(oi.f.Mtime())
		o.o.Tree.Lock()
		oi.passed.Store(oi.writers == 0) // a writer that comes later knows of it
		o.o.Tree.Unlock()
	}
	held.unlock()
	return fd, oi.passed.Load()
}

// wasMapped reports whether the content file has changed behind our back: while
// the kernel reads it itself, a program that maps it for writing does so too. The disk
// moves the file's time on the first store to a page that it has written, so
// the pages are written after each look.
func (oi *OpenInode) wasMapped() bool {
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
// may still be mapped for writing: the stores come to the disk, not to us. The dirty
// intent stays on record meanwhile. It reports whether a goroutine stays, in place
// of the caller. When no program has it mapped, what was stored since the last look is in
// the table.
func (o *Opener) linger(oi *OpenInode) (stays bool, err error) {
	if oi.f == nil {
		return false, nil
	}
	if oi.f.Quiet() {
		return false, o.Flush(oi, false)
	}
	v := o.o.Tree.Lock()
	stays = !oi.lingered && o.o.Go(v, func() { o.lingers(oi) })
	oi.lingered = oi.lingered || stays
	o.o.Tree.Unlock()
	return stays, nil
}

// lingers takes what is stored through mappings, until there is none.
func (o *Opener) lingers(oi *OpenInode) {
	for over := false; !over; {
		if !oi.f.Quiet() {
			if o.o.Context.Err() != nil {
				break
			}
			oi.unseen.Store(true)
			if o.o.Pause(o.o.Context, lingerFor) == nil {
				_ = o.Flush(oi, false)
			}
			continue
		}
		o.o.Tree.Lock()
		if over = oi.writers > 0 || !oi.unseen.Load(); over {
			oi.lingered = false
		}
		if oi.writers == 0 {
			oi.unseen.Store(false) // and once more: a writer may have come and gone
		}
		o.o.Tree.Unlock()
	}
	_ = o.Flush(oi, false)
	o.Release(oi)
}
