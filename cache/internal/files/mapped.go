package files

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Content that is passed through is read by the kernel itself, from the content file, and
// so a program that maps it for writing stores to that file without our seeing it. The
// file's time tells that it did, and a lease whether it still can.

// MayPass reports whether the kernel may read the content itself: all of it is local, and
// no program writes it.
func (oi *OpenInode) MayPass(*tree.View) bool { return oi.writers == 0 && oi.f.Whole() }

// PassThrough gives the descriptor of the content file, for the kernel to read; false when
// there is none.
func (o *Opener) PassThrough(oi *OpenInode) (fd int, ok bool) {
	if fd = oi.f.Fd(); fd < 0 {
		return fd, false
	}
	held := oi.lock()
	if !oi.passed.Load() && tellsTime(fd) {
		oi.disk.Store(oi.f.Mtime())
		o.o.Tree.Lock()
		oi.passed.Store(oi.writers == 0) // a later writer looks at passed
		o.o.Tree.Unlock()
	}
	held.unlock()
	return fd, oi.passed.Load()
}

// wasMapped reports whether the content file has changed without our seeing it: while the
// kernel reads it itself, a program that maps it for writing changes it directly. The file
// system moves the file's time on the first store to a page that it has written back, so
// the pages are written back after each look.
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

// tellsTime reports whether the file system moves a file's time when a mapping changes it:
// one in memory does not.
func tellsTime(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Type != unix.TMPFS_MAGIC
}

// lingerFor is how often linger looks whether a mapping has ended.
const lingerFor = time.Second

// linger stays with a file whose last writer has closed it while the content file may still
// be mapped for writing: the stores go to the disk, not through us. The dirty intent stays
// on record meanwhile. It reports whether a goroutine stays, in place of the caller. When
// no program has it mapped, the stores since the last look are in the table.
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

// lingers flushes the stores through mappings, until there is no mapping.
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
