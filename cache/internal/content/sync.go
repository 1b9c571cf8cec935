package content

import "fmt"

// Sync returns when the bytes that are here are on the disk, and the record of
// them. An error stays: the kernel may have dropped what it could not write.
func (f *File) Sync() error {
	f.mu.Lock()
	if f.blank {
		defer f.mu.Unlock()
		return f.syncErr
	}
	fd, err := f.readerLocked()
	if f.syncErr != nil {
		err = f.syncErr
	}
	f.pins++
	var here []uint8
	if f.blocks != nil {
		here = append(here, f.blocks.state...)
	}
	again := f.synced
	f.mu.Unlock()

	if err == nil {
		err = f.s.dirs.syncData(f.ino, fd, again)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.unpin()
	if err != nil {
		f.syncErr = fmt.Errorf("content: sync %d: %w", f.ino, err)
		return err
	}
	f.synced = true
	return f.syncBlocks(here)
}

// syncBlocks records which blocks are on the disk: those that were here before
// the data was written out. mu is held.
func (f *File) syncBlocks(here []uint8) error {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blank {
		return true
	}
	fd, err := f.readerLocked()
	if err != nil {
		return false
	}
	f.shutWriter() // ours would count as well
	return f.s.dirs.quiet(fd)
}
