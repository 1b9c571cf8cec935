package fs

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// ioMode is how the kernel reads and writes an inode's open files.
type ioMode uint8

const (
	modeNone        ioMode = iota
	modeCached             // through the page cache, misses and writes come to the volume
	modePassthrough        // directly in the backing file
)

func (m ioMode) String() string {
	return [...]string{"none", "cached", "passthrough"}[m]
}

// ioModes keeps the io mode of every inode that is open. The kernel allows an inode one mode at
// a time and one backing file: a cached open while a passthrough open exists is EIO for the
// program. So the first open chooses the mode until the last release. The kernel leaves a mode
// before it sends the release, and enters one after our reply, so an inode is in the kernel's
// mode no longer than in ours.
type ioModes struct {
	backing backing // nil: no passthrough
	mapped  bool    // the kernel maps files that are opened FOPEN_DIRECT_IO for all to share
	log     *slog.Logger
	notify  func(node uint64) // the pages of a node are not to be trusted

	disabled atomic.Pointer[string] // why passthrough is off for the mount

	mu   sync.Mutex
	open map[uint64]*openNode // guarded by mu
	// paged are inodes that were opened cached while passthrough was on. Pages that the kernel
	// still has of them are wrong once a program has written past the page cache. Guarded by
	// mu.
	paged map[uint64]struct{}
}

// backing registers descriptors with the kernel; *fuse.Server does it.
type backing interface {
	RegisterBackingFd(*fuse.BackingMap) (int32, syscall.Errno)
	UnregisterBackingFd(int32) syscall.Errno
}

type openNode struct {
	mu      sync.Mutex // taken without ioModes.mu; guards the fields down to wrote
	opens   int
	writers int
	mode    ioMode
	id      int32 // of the backing file, in modePassthrough
	wrote   bool  // a program may have written in modePassthrough

	refs int // guarded by ioModes.mu
}

func newIOModes(log *slog.Logger) *ioModes {
	return &ioModes{log: log, open: make(map[uint64]*openNode), paged: make(map[uint64]struct{})}
}

func (m *ioModes) ref(node uint64) *openNode {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.open[node]
	if n == nil {
		n = &openNode{}
		m.open[node] = n
	}
	n.refs++
	return n
}

func (m *ioModes) unref(node uint64, n *openNode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n.refs--; n.refs == 0 {
		delete(m.open, node)
	}
}

// opened decides the mode for an open and fills the kernel's answer.
func (m *ioModes) opened(node uint64, o *Opened, writable bool, out *fuse.OpenOut) {
	n := m.ref(node)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opens++
	if writable {
		n.writers++
	}
	pass := o.PassRead && (o.PassWrite || !writable)
	direct := m.direct(o)
	if n.mode == modeNone {
		m.choose(node, n, o, pass, direct)
	}
	if o.NoFlush {
		out.OpenFlags |= fuse.FOPEN_NOFLUSH
	}
	if n.mode == modePassthrough {
		out.OpenFlags |= fuse.FOPEN_PASSTHROUGH
		out.BackingID = n.id
		if pass {
			n.wrote = n.wrote || writable
		} else {
			// Reads and writes come to the volume one by one, and the inode stays in the mode
			// that its other open files need.
			out.OpenFlags |= fuse.FOPEN_DIRECT_IO
		}
		return
	}
	if direct {
		out.OpenFlags |= fuse.FOPEN_DIRECT_IO
	} else if o.KeepCache && !o.NewAttr {
		out.OpenFlags |= fuse.FOPEN_KEEP_CACHE
	}
}

// direct reports whether an open that is not passed through bypasses the page cache. It does
// while the kernel may have the size of another version: a thread that learns the new size
// truncates the pages to it, without the lock that writers take (the kernel's
// fuse_change_attributes). Bytes that a program has appended to a page by then become zeros, in
// the file too if they were not sent yet. It does not before Linux 6.6, where programs cannot
// share a mapping of a file opened like this: they do that far more often.
func (m *ioModes) direct(o *Opened) bool { return o.Direct || o.NewAttr && m.mapped }

func (m *ioModes) choose(node uint64, n *openNode, o *Opened, pass, direct bool) {
	if pass && m.backing != nil && m.disabled.Load() == nil {
		id, errno := m.backing.RegisterBackingFd(&fuse.BackingMap{Fd: int32(o.Backing)})
		if errno == 0 {
			n.mode, n.id, n.wrote = modePassthrough, id, false
			return
		}
		m.refused(errno)
	}
	n.mode = modeCached
	if m.backing != nil && !direct {
		m.mu.Lock()
		m.paged[node] = struct{}{}
		m.mu.Unlock()
	}
}

// refused turns passthrough off for the mount when the error means that the kernel will refuse
// every time; a shortage of descriptors or memory may pass.
func (m *ioModes) refused(errno syscall.Errno) {
	switch errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		return
	}
	why := fmt.Sprintf("the kernel refused a backing file: %v", errno)
	if errno == syscall.ELOOP {
		why = "the files lie on a stacked file system (overlayfs); the kernel passes through to plain ones only"
	}
	if m.disabled.CompareAndSwap(nil, &why) {
		m.log.Warn("no passthrough on this mount", "reason", why)
	}
}

// released undoes one call of opened. The last release frees the backing file.
func (m *ioModes) released(node uint64, writable bool) {
	m.mu.Lock()
	n := m.open[node]
	m.mu.Unlock()
	if n == nil {
		return
	}
	n.mu.Lock()
	n.opens--
	if writable {
		n.writers--
	}
	if n.opens == 0 {
		m.leave(node, n)
	}
	n.mu.Unlock()
	m.unref(node, n)
}

func (m *ioModes) leave(node uint64, n *openNode) {
	if n.mode == modePassthrough {
		if errno := m.backing.UnregisterBackingFd(n.id); errno != 0 {
			m.log.Error("a backing file stays registered", "id", n.id, "err", errno)
		}
		if n.wrote && m.wasPaged(node) {
			m.notify(node)
		}
	}
	n.mode = modeNone
}

func (m *ioModes) wasPaged(node uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.paged[node]
	delete(m.paged, node)
	return ok
}

func (m *ioModes) forget(node uint64) {
	if m.backing == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.paged) > 0 {
		delete(m.paged, node)
	}
}

// state reports an open inode's mode and numbers.
func (m *ioModes) state(node uint64) (mode ioMode, opens, writers int) {
	m.mu.Lock()
	n := m.open[node]
	m.mu.Unlock()
	if n == nil {
		return modeNone, 0, 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mode, n.opens, n.writers
}
