package content

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pathXattr holds the path of a content file's file.
const pathXattr = "user.wsmount.path"

// paths are written some time after they are known: most files that programs
// make are gone by then, and the rest are not made to wait for it.
type paths struct {
	mu      sync.Mutex
	pending map[uint64]string
	timer   *time.Timer
}

const (
	pathDelay = time.Second
	pathMost  = 16384 // pending
)

// notePath remembers a path that is to be written.
func (s *Store) notePath(ino uint64, path string) {
	p := &s.paths
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = make(map[uint64]string)
	}
	p.pending[ino] = path
	switch {
	case p.timer == nil:
		p.timer = time.AfterFunc(pathDelay, s.writePaths)
	case len(p.pending) == pathMost:
		p.timer.Reset(0)
	}
}

// forget drops what is pending for an inode without content.
func (p *paths) forget(ino uint64) {
	p.mu.Lock()
	delete(p.pending, ino)
	p.mu.Unlock()
}

// writePaths is flushPaths for the timer.
func (s *Store) writePaths() {
	if s.work.begin() {
		defer s.work.done()
		s.flushPaths()
	}
}

// flushPaths writes what is pending.
func (s *Store) flushPaths() {
	p := &s.paths
	p.mu.Lock()
	pending := p.pending
	p.pending = nil
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.mu.Unlock()
	for ino, path := range pending {
		s.writePath(ino, path)
	}
}

// writePath writes a path beside its content. A file system without extended
// attributes goes without.
func (s *Store) writePath(ino uint64, path string) {
	defer s.lockNames(ino).Unlock()
	trusted := s.Trust(ino, true)
	err := s.in(ino, func(dir int, name string) error {
		return unix.Lsetxattr(fmt.Sprintf("/proc/self/fd/%d/%s", dir, name), pathXattr, []byte(path), 0)
	})
	if err == nil && trusted {
		_ = s.Verified(ino) // the attribute changed the file's ctime
	}
}

// readPath is the path that was noted for a content file, "" for none.
func readPath(file string) string {
	buf := make([]byte, 4096)
	n, err := unix.Lgetxattr(file, pathXattr, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
