package content

import "fmt"

// Sync returns when the bytes that are here are on the disk, and the record of
// them. An error stays: the kernel may have dropped what it could not write.
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

// syncRun is what one Sync is about.
type syncRun struct {
	fd    int     // is pinned
	here  []uint8 // the blocks that were here
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

// syncBlocks records which blocks are on the disk: those that were here before
// the data was written out.
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
	// Before the map goes, too: one that came back after a loss of power must
	// not have written blocks fetched again.
	if err := f.s.dirs.sync(b.fd); err != nil || !all {
		return err
	}
	return f.settle()
}

// Quiet reports that nobody but the users of this File can change the content:
// there is no descriptor for writing and no mapping of it elsewhere, such as
// those that outlived a daemon before this one.
func (f *File) Quiet() bool {
	l := f.lock()
	defer l.unlock()
	if l.blank {
		return true
	}
	fd, err := l.reader()
	if err != nil {
		return false
	}
	l.shutWriter() // ours would count as well
	return f.s.dirs.quiet(fd)
}
