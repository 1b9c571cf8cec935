package direct

import (
	"sync"

	wsfs "github.com/wsmount/wsmount/fs"
)

// A ring keeps the descriptors of directories in use, a bounded number of them: one that was
// not used since the hand last passed is closed.
type ring struct {
	tab *table
	fds *descriptors
	cap int

	mu    sync.Mutex // guards the fields below
	slots []wsfs.Ino
	hand  int
}

// ringSize leaves most descriptors to open files.
func ringSize(limit int) int { return min(max(limit/8, 16), 4096) }

// keep makes h the descriptor of directory ino, unless it has one, and returns the one to use,
// with a reference for the caller. The caller gives up its reference to h.
func (r *ring) keep(ino wsfs.Ino, h *handle) *handle {
	if h.fd >= r.fds.limit-reserve(r.fds.limit) {
		return h // the reserve is for requests, not to be kept
	}
	n, ok := r.tab.lock(ino)
	if !ok {
		return h
	}
	e := n.more()
	if e.dir != nil {
		got := e.dir.hold()
		n.unlock()
		h.drop()
		return got
	}
	e.dir = h.hold()
	n.unlock()
	r.enter(ino)
	return h
}

// enter gives a directory a place in the ring, taking it from another.
func (r *ring) enter(ino wsfs.Ino) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.slots) < r.cap {
		r.slots = append(r.slots, ino)
		return
	}
	for range 2 * len(r.slots) {
		if r.hand++; r.hand >= len(r.slots) {
			r.hand = 0
		}
		if r.evict(r.slots[r.hand]) {
			break
		}
	}
	r.slots[r.hand] = ino
}

// evict takes a directory's descriptor away, unless it was used lately.
func (r *ring) evict(ino wsfs.Ino) bool {
	n, ok := r.tab.lock(ino)
	if !ok {
		return true
	}
	if n.ext == nil || n.ext.dir == nil {
		n.unlock()
		return true
	}
	h := n.ext.dir
	if h.used.Swap(false) {
		n.unlock()
		return false
	}
	n.ext.dir = nil
	n.trim()
	n.unlock()
	h.drop()
	return true
}
