package direct

import (
	"syscall"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// The mode that the kernel was last told decides which user a set-id file runs as. The daemon
// clears the bits of a file that is written to, which the kernel does not see, and the kernel
// discards an answer about attributes that a write overtakes. So the disk's rule, that a file
// is not run and written to at a time, is kept for files with bits, and a file that lost them
// is run only when the kernel has learned that by an answer that nothing can have overtaken.

const (
	// fmodeExec is in the flags of an open on behalf of execve(2).
	fmodeExec = 0x20

	// patience is how long an open waits for the release of files that were already closed: the
	// kernel sends the release after close(2) returned.
	patience = time.Second

	// onTheWay is longer than any answer takes to the kernel.
	onTheWay = 2 * time.Second
)

// admit is called when an open file has been entered: of two concurrent calls at least one
// finds the other file. mode is the file's mode from before.
func (k *setIDs) admit(ino wsfs.Ino, flags, mode uint32) error {
	switch {
	case flags&fmodeExec != 0:
		return k.admitRun(ino)
	case flags&unix.O_ACCMODE != unix.O_RDONLY && privMode(mode) != 0:
		return k.wait(func() bool { return !k.has(ino, (*file).runs) })
	}
	return nil
}

// admitRun returns ESTALE, on which the kernel looks up again, if the kernel may have seen bits
// that are gone.
func (k *setIDs) admitRun(ino wsfs.Ino) error {
	var st stat
	if _, err := k.res.stat(ino, &st); err != nil {
		return err
	}
	if privMode(uint32(st.Mode)) == 0 && k.unsetAt(ino) == 0 {
		return nil
	}
	if err := k.wait(func() bool { return !k.has(ino, (*file).writes) }); err != nil {
		return err
	}
	if _, err := k.res.stat(ino, &st); err != nil {
		return err
	}
	at := k.unsetAt(ino)
	if privMode(uint32(st.Mode)) != 0 || at == 0 {
		return nil // as before, or set again since: the kernel was told
	}
	time.Sleep(onTheWay - k.now().Sub(time.Unix(0, at)))
	return syscall.ESTALE
}

// wait returns ETXTBSY if done stays false for the time of patience.
func (k *setIDs) wait(done func() bool) error {
	for end := k.now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if k.now().After(end) {
			return syscall.ETXTBSY
		}
	}
	return nil
}

// has reports whether such is true of one of an inode's open files.
func (k *setIDs) has(ino wsfs.Ino, such func(*file) bool) bool {
	n, ok := k.tab.lock(ino)
	if !ok {
		return false
	}
	defer n.unlock()
	if n.ext == nil {
		return false
	}
	for f := n.ext.files; f != nil; f = f.next {
		if such(f) {
			return true
		}
	}
	return false
}

// noteUnset records that a write has cleared bits.
func (k *setIDs) noteUnset(ino wsfs.Ino) {
	if n, ok := k.tab.lock(ino); ok {
		n.more().unset = k.now().UnixNano()
		n.unlock()
	}
}

func (k *setIDs) unsetAt(ino wsfs.Ino) int64 {
	n, ok := k.tab.lock(ino)
	if !ok {
		return 0
	}
	defer n.unlock()
	if n.ext == nil {
		return 0
	}
	return n.ext.unset
}

// showMode notes that the kernel is about to get a mode.
func (n *inode) showMode(st *stat, now time.Time) {
	if n.ext == nil || n.ext.unset == 0 || privMode(uint32(st.Mode)) != 0 {
		return
	}
	for f := n.ext.files; f != nil; f = f.next {
		if f.writes() {
			return
		}
	}
	if now.Sub(time.Unix(0, n.ext.unset)) >= onTheWay {
		n.ext.unset = 0
		n.trim()
	}
}
