package table

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// file is a file that Pebble writes, or a directory that it syncs; see disk.
type file struct {
	vfs.File
	disk *disk
	role role

	// Of a log.
	number   uint64
	unsynced atomic.Bool  // bytes were written since the last flush began
	size     atomic.Int64 // bytes written
	room     atomic.Int64 // bytes for which the disk has set blocks aside
	mu       sync.Mutex   // held over a flush
	gone     bool         // closed; guarded by mu
}

// Write appends, for one goroutine at a time.
func (f *file) Write(p []byte) (int, error) {
	if f.disk.frozen.Load() {
		return len(p), nil
	}
	n, err := f.File.Write(p)
	for err != nil && f.role == vital && isFull(err) && !f.disk.isClosing() && !f.disk.opening.Load() {
		// A goroutine of Pebble's, which has nothing better to do than to wait
		// for room; Commit fails meanwhile with ErrFull if it must.
		f.disk.backlog.change(func() { f.disk.backlog.failing = true })
		f.disk.pause()
		var more int
		more, err = f.File.Write(p[n:])
		n += more
	}
	if err != nil && (f.role != plain || f.disk.cannotOpen(err)) {
		f.disk.freeze(err)
		return len(p), nil
	}
	size := f.size.Add(int64(n))
	if f.role == log {
		f.disk.mark.wrote(f.number, size)
		f.disk.backlog.written.Add(int64(n))
	}
	f.unsynced.Store(true) // after the write: a flush that clears it includes it
	return n, err
}

// Sync makes the written bytes survive a power cut, but not those of a log.
func (f *file) Sync() error { return f.sync(f.File.Sync) }

// SyncData is Sync without times.
func (f *file) SyncData() error { return f.sync(f.File.SyncData) }

func (f *file) sync(sync func() error) error {
	if f.role == log || f.disk.frozen.Load() {
		return nil
	}
	err := sync()
	if err != nil && f.role == vital {
		f.disk.freeze(err)
		return nil
	}
	return err
}

// flush makes the written bytes of a log survive a power cut. After a failure the kernel
// may have dropped bytes that it could not write, and a flush that succeeds would prove
// nothing: so there is none.
func (f *file) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone || f.disk.frozen.Load() || !f.unsynced.Swap(false) {
		return
	}
	if err := f.File.SyncData(); err != nil {
		f.disk.freeze(err)
	}
}

// Close flushes a log first.
func (f *file) Close() error {
	if f.role == log {
		f.flush()
		f.disk.closed(f)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	err := f.File.Close()
	if err != nil && f.role != plain {
		f.disk.freeze(err)
		return nil
	}
	return err
}

// Preallocate sets blocks aside. Its failure matters to reserve only.
func (f *file) Preallocate(offset, length int64) error {
	if f.disk.frozen.Load() {
		return nil
	}
	err := f.File.Preallocate(offset, length)
	if err == nil {
		f.room.Store(max(f.room.Load(), offset+length))
	}
	return err
}

// reserve makes sure that n more bytes can be written.
func (f *file) reserve(n int64) error {
	size := f.size.Load()
	if size+n <= f.room.Load() {
		return nil
	}
	return f.disk.setAside(n, func(n int64) error { return f.Preallocate(size, n) })
}

// setAside allocates n bytes, and more while there is room: on a full disk the last blocks
// go to commits, since a removal makes room.
func (d *disk) setAside(n int64, allocate func(n int64) error) error {
	const ahead = 256 << 10
	err := allocate(n + ahead)
	if isFull(err) {
		err = allocate(n)
	}
	if isFull(err) {
		d.noSpace()
		err = allocate(n)
	}
	if isFull(err) {
		return err
	}
	return nil // another error proves nothing: the write will fail if there is no room
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
