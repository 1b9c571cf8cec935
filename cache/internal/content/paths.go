package content

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pathXattr holds the path of a content file's file.
const pathXattr = "user.wsmount.path"

// paths are written some time after they are known: most files that programs make are gone
// by then, and the rest do not wait for it.
type paths struct {
	dirs *dirs
	work *work

	mu      sync.Mutex // guards the rest
	pending map[uint64]string
	timer   *time.Timer
}

const (
	pathDelay = time.Second
	pathMost  = 16384 // pending
)

func (p *paths) init(d *dirs, w *work) { p.dirs, p.work = d, w }

// SetPath notes the path of an inode's file, for [Store.Each]: when it was renamed, and when
// content that was not made by [Store.Create] or [Store.Sparse] since the store was opened has
// changes that are nowhere else. It is written to the disk within a second or two.
func (s *Store) SetPath(ino uint64, path string) { s.paths.note(ino, path) }

// note remembers a path that is to be written.
func (p *paths) note(ino uint64, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = make(map[uint64]string)
	}
	p.pending[ino] = path
	switch {
	case p.timer == nil:
		p.timer = time.AfterFunc(pathDelay, p.flushLater)
	case len(p.pending) == pathMost:
		p.timer.Reset(0)
	}
}

// forget drops the pending path of an inode without content.
func (p *paths) forget(ino uint64) {
	p.mu.Lock()
	delete(p.pending, ino)
	p.mu.Unlock()
}

// flushLater is flush for the timer.
func (p *paths) flushLater() {
	if p.work.begin() {
		defer p.work.done()
		p.flush()
	}
}

// flush writes the pending paths.
func (p *paths) flush() {
	for ino, path := range p.take() {
		p.write(ino, path)
	}
}

// take gives the pending paths, and leaves none pending.
func (p *paths) take() map[uint64]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	pending := p.pending
	p.pending = nil
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	return pending
}

// write writes a path beside its content. A file system without extended
// attributes goes without.
func (p *paths) write(ino uint64, path string) {
	defer p.dirs.lock(ino).unlock()
	_ = p.dirs.in(ino, func(dir int, name string) error {
		return unix.Lsetxattr(fmt.Sprintf("/proc/self/fd/%d/%s", dir, name), pathXattr, []byte(path), 0)
	})
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
