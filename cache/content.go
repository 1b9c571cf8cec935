package cache

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
)

// content is the content file of an inode that is open, one descriptor for all
// its opens.
type content struct {
	ino fs.Ino
	f   *os.File

	// mu is held over every change of the file, so that size, state and bytes
	// agree. It comes before Volume.mu.
	mu sync.Mutex

	opens  int           // guarded by Volume.mu
	passed bool          // the kernel may know the descriptor; guarded by Volume.mu
	mtime  unix.Timespec // of the file after our last change; guarded by mu
}

// acquire opens the content of an inode. When it is not here, an empty file is
// made for empty, else it is fetched.
func (v *Volume) acquire(op *fs.Op, ino fs.Ino, empty bool) (*content, error) {
	for {
		c, err := v.acquireLocal(ino, empty)
		if c != nil || err != nil {
			return c, err
		}
		if err := v.share(op, ino, func(w *waiting) error { return v.fetch(w, ino) }); err != nil {
			return nil, err
		}
	}
}

// acquireLocal is acquire for what is here; nil when it must be fetched.
func (v *Volume) acquireLocal(ino fs.Ino, empty bool) (*content, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	switch {
	case n == nil:
		return nil, fs.ErrStale
	case n.isDir():
		return nil, syscall.EISDIR
	case !n.isRegular():
		return nil, syscall.ENXIO
	}
	if c := v.files[ino]; c != nil {
		c.opens++
		return c, nil
	}
	f, err := v.openContent(ino, n, empty)
	if f == nil || err != nil {
		return nil, err
	}
	n.present = true
	v.table.save(ino, n)
	return v.opening(ino, f), nil
}

// openContent opens the content file, or makes one that needs no fetching; nil
// when there is something to fetch. v.mu is held.
func (v *Volume) openContent(ino fs.Ino, n *node, empty bool) (*os.File, error) {
	switch {
	case n.present:
		return v.store.open(ino)
	case !empty && n.size != 0 && len(n.links) == 0:
		return nil, fs.ErrStale // its only copy was removed at the backend
	case !empty && n.size != 0:
		return nil, nil
	}
	f, err := v.store.create(ino)
	if err != nil {
		return nil, err
	}
	n.blocks = 0
	if n.size != 0 {
		n.size = 0
		v.touched(ino, n)
	}
	return f, nil
}

// opening is the content of an inode whose file was just opened. v.mu is held.
func (v *Volume) opening(ino fs.Ino, f *os.File) *content {
	c := &content{ino: ino, f: f, opens: 1}
	c.look()
	v.files[ino] = c
	return c
}

// release undoes one acquire.
func (v *Volume) release(c *content) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c.opens--; c.opens > 0 {
		return
	}
	delete(v.files, c.ino)
	if n := v.table.node(c.ino); n != nil {
		n.blocks = blocksOf(c.f)
		v.table.save(c.ino, n)
	}
	c.f.Close()
	v.reap(c.ino)
}

// reap drops an inode that nothing leads to any more. v.mu is held.
func (v *Volume) reap(ino fs.Ino) {
	n := v.table.node(ino)
	if n == nil || ino == fs.RootIno || len(n.links) > 0 || n.refs > 0 || n.pins > 0 || v.files[ino] != nil {
		return
	}
	v.table.drop(ino)
	delete(v.unsaved, ino)
	if n.present && !v.closed {
		v.work.Add(1)
		go func() {
			defer v.work.Done()
			v.store.remove(ino)
		}()
	}
}

// touched says that the content of an inode is in a new state. v.mu is held.
func (v *Volume) touched(ino fs.Ino, n *node) {
	n.gen++
	n.modified(v.now())
	v.mark(ino, n)
	v.table.save(ino, n)
}

// mark keeps the set of what is unsaved. v.mu is held.
func (v *Volume) mark(ino fs.Ino, n *node) {
	if n.dirty() {
		v.unsaved[ino] = struct{}{}
	} else {
		delete(v.unsaved, ino)
	}
}

// change runs do, which changes the content file, and keeps account of it.
// kill says that rights of the file end with the change.
func (v *Volume) change(c *content, kill bool, do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := do()
	var st unix.Stat_t
	if serr := unix.Fstat(int(c.f.Fd()), &st); serr != nil {
		return serr
	}
	if err != nil && st.Mtim == c.mtime {
		return err // nothing happened
	}
	c.mtime = st.Mtim
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(c.ino)
	n.size = st.Size
	if kill {
		n.dropPrivileges()
	}
	v.touched(c.ino, n)
	return err
}

// noticeMapped looks whether a mapping of the backing file changed the content
// without us. The file system under it moves the file's time on the first
// store after we looked.
func (v *Volume) noticeMapped(c *content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !c.passed {
		return
	}
	var st unix.Stat_t
	if unix.Fstat(int(c.f.Fd()), &st) != nil || st.Mtim == c.mtime {
		return
	}
	c.mtime = st.Mtim
	v.touched(c.ino, v.table.node(c.ino))
}

// look remembers the file's time, so that a later change of it is noticed.
// c.mu is held.
func (c *content) look() {
	var st unix.Stat_t
	if unix.Fstat(int(c.f.Fd()), &st) == nil {
		c.mtime = st.Mtim
	}
}

func blocksOf(f *os.File) int64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	return st.Blocks
}
