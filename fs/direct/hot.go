package direct

import (
	"sync"
	"sync/atomic"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A hot name was replaced by others between a lookup and the open that followed. The kernel
// answers that by looking up and opening once more, and no more than once: a name that is
// replaced all the time would fail again. So while a name is hot, a lookup takes a descriptor
// of the file it found, and the open that follows uses that descriptor, even if the name leads
// to another file by then. As a rule the name led to it during the open(2), because the kernel
// believes no answer about a hot name for longer than the request; but a rename in the mount
// may have given it the name meanwhile, which the kernel believes. So only reads are served
// like this: writes must go to the file that has the name.
type hot struct {
	tab *table
	now func() time.Time

	n     atomic.Int32 // number of names, so that no lookup takes the lock when it is 0
	mu    sync.Mutex
	until map[key]time.Time
	pins  []wsfs.Ino // inodes with a descriptor for a hot name, oldest first
}

const (
	hotFor  = time.Second
	hotMost = 64
)

// replaced makes a name hot. A name beyond the limit is left out: its open may fail, as it
// would without hot names.
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

// is reports whether a name is hot.
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

// lookupHot is Lookup of a hot name. It returns false if no descriptor can be opened: the
// caller does an ordinary lookup.
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

// pin gives an inode a descriptor, and takes back the oldest one that was given.
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

// cool takes the descriptor of a hot inode away, unless it is needed for another reason.
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
