package fs

import "sync"

// handle is an open file or directory, behind a file handle of the kernel.
type handle struct {
	s    *slot
	ino  Ino
	file File // nil for a directory
	dir  *openDir

	writable bool
}

// handles numbers the open handles. Number 0 is never given out.
type handles struct {
	mu   sync.RWMutex
	list []*handle // guarded by mu
	free []uint64  // guarded by mu
}

func (t *handles) add(h *handle) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		fh := t.free[n-1]
		t.free = t.free[:n-1]
		t.list[fh-1] = h
		return fh
	}
	t.list = append(t.list, h)
	return uint64(len(t.list))
}

// get returns nil for a number without an open handle.
func (t *handles) get(fh uint64) *handle {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if fh == 0 || fh > uint64(len(t.list)) {
		return nil
	}
	return t.list[fh-1]
}

// remove forgets a handle and returns it; nil if there was none.
func (t *handles) remove(fh uint64) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fh == 0 || fh > uint64(len(t.list)) || t.list[fh-1] == nil {
		return nil
	}
	h := t.list[fh-1]
	t.list[fh-1] = nil
	t.free = append(t.free, fh)
	return h
}

// all returns the handles that are open.
func (t *handles) all() []*handle {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]*handle, 0, len(t.list)-len(t.free))
	for _, h := range t.list {
		if h != nil {
			out = append(out, h)
		}
	}
	return out
}
