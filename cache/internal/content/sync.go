package content

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Sync returns when the local bytes, and the record of them, are on the disk. An error
// stays: the kernel may have dropped the bytes that it could not write.
func (f *File) Sync() error {
	run, err := f.beginSync()
	if run == nil {
		return err
	}
	if err == nil {
		err = f.s.dirs.syncData(f.ino, run.fd, run.again)
	}
	l := f.lock()
	defer l.unlock()
	defer l.unpin()
	if err != nil {
		l.syncErr = fmt.Errorf("content: sync %d: %w", f.ino, err)
		return err
	}
	l.synced = true
	return l.syncBlocks(run.here)
}

// syncRun is the state of one Sync.
type syncRun struct {
	fd    int     // is pinned
	here  []uint8 // the blocks that were local
	again bool    // the file was synced before
}

// beginSync begins a Sync; nil when nothing of the file is on the disk.
func (f *File) beginSync() (*syncRun, error) {
	l := f.lock()
	defer l.unlock()
	if l.blank {
		return nil, l.syncErr
	}
	fd, err := l.reader()
	if l.syncErr != nil {
		err = l.syncErr
	}
	l.pins++
	run := &syncRun{fd: fd, again: l.synced}
	if l.blocks != nil {
		run.here = append(run.here, l.blocks.state...)
	}
	return run, err
}

// syncBlocks records which blocks are on the disk: those that were local before the data
// was written out.
func (f *lockedFile) syncBlocks(here []uint8) error {
	b := f.blocks
	if b == nil || b.fd < 0 {
		return nil
	}
	all := true
	for i := 0; i < len(here); i++ {
		lo := i
		for i < len(here) && here[i]&present != 0 {
			i++
		}
		all = all && i == len(here)
		if err := b.mark(lo, i, durable); err != nil {
			return err
		}
	}
	// Before the map goes, too: one that came back after a loss of power must not have
	// written blocks fetched again.
	if err := f.s.dirs.sync(b.fd); err != nil || !all {
		return err
	}
	return f.settle()
}

// syncData brings the bytes of an inode's content to the disk, and when it was not
// synced before its name too: fdatasync covers no rename.
func (d *dirs) syncData(ino uint64, fd int, again bool) error {
	if again {
		if err := retry(func() error { return unix.Fdatasync(fd) }); err != nil {
			return err
		}
		return d.syncMaps()
	}
	if err := d.sync(fd); err != nil {
		return err
	}
	if d.syncDir {
		if err := d.syncName(ino); err != nil {
			return err
		}
	}
	return d.syncMaps()
}

func (d *dirs) sync(fd int) error { return retry(func() error { return d.fsync(fd) }) }

// syncMaps returns when the disk has the unlink of every map. A map
// that came back after a loss of power would have written blocks fetched again.
func (d *dirs) syncMaps() error {
	d.unmapped.Lock()
	defer d.unmapped.Unlock()
	if !d.dirty {
		return nil
	}
	err := d.inMaps(0, func(dir int, _ string) error { return retry(func() error { return unix.Fsync(dir) }) })
	d.dirty = err != nil
	return err
}

// syncName returns when the disk has the name of an inode's content.
func (d *dirs) syncName(ino uint64) error {
	return d.in(ino, func(dir int, _ string) error { return d.sync(dir) })
}
