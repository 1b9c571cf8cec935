package direct

import (
	"sync"
	"sync/atomic"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A hot name was replaced by others between a lookup and the open that followed.
// The kernel answers that by looking up and opening once more, and no more than
// once: a name that is replaced all the time would fail again. So while a name is
// hot, a lookup takes a descriptor of what it found, and the open that follows
// is served from that, whatever lies under the name by then. It was there during
// the open(2) as a rule, because the kernel believes no answer about a hot name for longer
// than the request; but a rename in the mount may have given it the name meanwhile, which
// it believes. So only reads are served so: what is written must go to what has the name.
type hot struct {
	tab *table
	now func() time.Time

	n     atomic.Int32 // names, so that no lookup waits where there is none
	mu    sync.Mutex
	until map[key]time.Time
	pins  []wsfs.Ino // inodes that got a descriptor so, oldest first
}

const (
	hotFor  = time.Second
	hotMost = 64
)

// replaced makes a name hot. One too many is not: it can only fail as it would
// anyway.
func (t *hot) replaced(dir wsfs.Ino, name string) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.until) >= hotMost {
		for k, at := range t.until {
			if !now.Before(at) {
				delete(t.until, k)
			}
		}
	}
	if t.until == nil {
		t.until = map[key]time.Time{}
	}
	if len(t.until) < hotMost {
		t.until[key{Dir: dir, Name: name}] = now.Add(hotFor)
	}
	t.n.Store(int32(len(t.until)))
}

// is says whether a name is hot.
func (t *hot) is(dir wsfs.Ino, name string) bool {
	if t.n.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{Dir: dir, Name: name}
	at, ok := t.until[k]
	if ok && !t.now().Before(at) {
		delete(t.until, k)
		t.n.Store(int32(len(t.until)))
		ok = false
	}
	return ok
}

// lookupHot is Lookup of a hot name. Where no descriptor is to be had it leaves
// the lookup to the usual way.
func (v *Volume) lookupHot(h *handle, dir wsfs.Ino, name string, watched bool) (wsfs.Entry, bool) {
	fd, err := openAt(h.fd, name, unix.O_PATH, 0)
	if err != nil {
		return wsfs.Entry{}, false
	}
	pin := v.fds.handle(fd, true)
	defer pin.drop()
	var st stat
	if statAt(fd, "", &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || v.disk.crosses(&st) {
		return wsfs.Entry{}, false
	}
	e, err := v.enterName(h, v.disk.identOf(fd, "", &st), dir, name, &st, watched, false)
	if err != nil {
		return e, false
	}
	e.TTL = 0
	v.hot.pin(e.Ino, pin)
	return e, true
}

// pin gives an inode a descriptor, and takes the oldest one that was given so.
func (t *hot) pin(ino wsfs.Ino, pin *handle) {
	n, ok := t.tab.lock(ino)
	if !ok {
		return
	}
	if n.more().pin != nil {
		n.unlock()
		return
	}
	n.ext.pin = pin.hold()
	n.flags |= flagHot
	n.unlock()
	var old wsfs.Ino
	t.mu.Lock()
	if t.pins = append(t.pins, ino); len(t.pins) > hotMost {
		old, t.pins = t.pins[0], t.pins[1:]
	}
	t.mu.Unlock()
	if old != 0 && old != ino {
		t.cool(old)
	}
}

// cool takes the descriptor of a hot inode, unless it is needed otherwise.
func (t *hot) cool(ino wsfs.Ino) {
	n, ok := t.tab.lock(ino)
	if !ok {
		return
	}
	var pin *handle
	if n.flags&flagHot != 0 {
		n.flags &^= flagHot
		if n.name != "" && n.ext.leaving == 0 {
			pin, n.ext.pin = n.ext.pin, nil
			n.trim()
		}
	}
	n.unlock()
	pin.dropLater()
}
