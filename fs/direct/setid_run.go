package direct

import (
	"syscall"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Which user a set-id file runs as is decided by the mode that the kernel was last
// told. The daemon takes the bits from a file that is written to, which the kernel
// does not see, and an answer about attributes that a write overtakes is thrown
// away by the kernel. So the disk's rule, that a file is not run and written to at
// a time, is kept for files with bits, and one that lost them is run only when the
// kernel has been told so by an answer that nothing can have overtaken.

const (
	// fmodeExec is in the flags of an open on behalf of execve(2).
	fmodeExec = 0x20

	// patience is how long an open waits for files that were closed already: the
	// kernel sends the release behind close(2).
	patience = time.Second

	// onTheWay is longer than any answer takes to the kernel.
	onTheWay = 2 * time.Second
)

// admit is asked when an open file has been entered: of two at a time at least
// one finds the other. mode is the file's from before.
func (k *setIDs) admit(ino wsfs.Ino, flags, mode uint32) error {
	switch {
	case flags&fmodeExec != 0:
		return k.admitRun(ino)
	case flags&unix.O_ACCMODE != unix.O_RDONLY && privMode(mode) != 0:
		return k.wait(func() bool { return !k.has(ino, (*file).runs) })
	}
	return nil
}

// admitRun says ESTALE, on which the kernel looks again, where it may have seen
// bits that are gone.
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
		return nil // as before, or given again since: the kernel was told
	}
	time.Sleep(onTheWay - k.now().Sub(time.Unix(0, at)))
	return syscall.ESTALE
}

// wait says ETXTBSY where what it waits for does not come.
func (k *setIDs) wait(done func() bool) error {
	for end := k.now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if k.now().After(end) {
			return syscall.ETXTBSY
		}
	}
	return nil
}

// has says whether one of an inode's open files is such.
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

// noteUnset notes that bits were taken away by a write.
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

// showMode notes that the kernel is about to be told of a mode.
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
