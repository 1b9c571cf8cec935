package content

import (
	"cmp"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// room is the disk space for content: the free space above a floor that stays free. When
// there is none, its evictor makes some. The ballast lies below the floor.
type room struct {
	statfs  func() (unix.Statfs_t, error)
	now     func() time.Time
	log     *slog.Logger
	kick    func() // has clean content evicted in the background
	evictor evictor

	floor  int64
	budget atomic.Int64 // bytes that may be written before looking again
	until  atomic.Int64 // when to look again at the latest, in ns

	held ballast // its lock is held while the disk is asked: see lock
}

const (
	roomBudget = 64 << 20
	roomFor    = time.Second
)

// open fits the floor and the ballast to the disk of a store in dir.
func (r *room) open(dir string, o *Options) {
	r.now, r.log = o.Now, o.Log
	r.statfs = func() (st unix.Statfs_t, err error) { return st, o.Statfs(dir, &st) }
	st, err := r.statfs()
	total := int64(st.Blocks) * blockSize(&st)
	if err != nil {
		total = 0
	}
	r.floor = max(cmp.Or(o.Floor, min(defaultFloor, total/50)), 0)
	b := r.lock()
	defer b.unlock()
	own := filepath.Join(dir, BallastName)
	b.path, b.log = cmp.Or(o.BallastFile, own), o.Log
	b.size = max(cmp.Or(o.Ballast, min(defaultBallast, max(total/320, min(leastBallast, total/12)))), 0)
	if b.look(); !b.have { // of another size, or half made
		_ = unix.Unlink(b.path)
	}
	if o.BallastFile != "" { // its own from an earlier run
		_ = unix.Unlink(own)
	}
	b.rebuild(r.available()-r.floor, r.now())
}

// lock waits for the ballast, and gives it to the caller until unlock.
func (r *room) lock() *ballast {
	r.held.mu.Lock()
	return &r.held
}

func blockSize(st *unix.Statfs_t) int64 {
	if st.Frsize > 0 {
		return st.Frsize
	}
	return st.Bsize
}

// available is how many bytes the disk has free for us. A disk that does not say is taken
// to have room: writes will fail if not.
func (r *room) available() int64 {
	st, err := r.statfs()
	if err != nil {
		r.log.Warn("content: statfs", "error", err)
		return 1 << 62
	}
	return int64(st.Bavail) * blockSize(&st)
}

// take says whether n more bytes may be written now, after clean content was evicted for
// them if need be; else errFloor.
func (r *room) take(n int64) error {
	if r.now().UnixNano() < r.until.Load() && r.budget.Add(-n) >= 0 {
		return nil
	}
	if r.look(n) || r.makeAbove(n, n) {
		return nil
	}
	return errFloor
}

// makeAbove evicts clean content until n bytes fit above the floor, also while others take
// the room, and reports whether they do. Each try evicts as much as need bytes take.
func (r *room) makeAbove(n, need int64) bool {
	for range fullTries {
		gaveUp := r.evictor.run(need)
		if r.look(n) {
			return true
		}
		if !gaveUp {
			return false
		}
	}
	return false
}

// look asks the disk whether n bytes fit above the floor, and takes them out of
// the budget.
func (r *room) look(n int64) bool {
	b := r.lock()
	defer b.unlock()
	free := r.available()
	b.look()
	if b.rebuild(free-r.floor, r.now()) {
		free = r.available()
	}
	if free < b.size/4 && b.relieve() {
		r.kick() // so that clean content makes room for another
	}
	left := free - r.floor - b.owed() - n
	if left < 0 {
		r.forget()
		return false
	}
	r.budget.Store(min(left, roomBudget))
	r.until.Store(r.now().Add(roomFor).UnixNano())
	return true
}

// forget has the disk asked again, despite its last figures.
func (r *room) forget() { r.until.Store(0) }

// short is how many bytes the disk lacks for need more of content, and for a ballast that
// was given up to be made again.
func (r *room) short(need int64) int64 {
	b := r.lock()
	defer b.unlock()
	return r.floor + b.spare() + need - r.available()
}

// forPrograms describes the disk for programs that write content, for which clean bytes can
// be evicted: space that is free and not available is kept for others, as a disk keeps
// blocks for root.
func (r *room) forPrograms(clean int64) (unix.Statfs_t, error) {
	st, err := r.statfs()
	if err != nil {
		return st, err
	}
	b := r.lock()
	b.look()
	kept := r.floor + b.owed()
	b.unlock()
	size := blockSize(&st)
	back := min(uint64(clean/size), st.Blocks-st.Bfree)
	st.Bfree += back
	st.Bavail = uint64(max(int64(st.Bavail+back)-(kept+size-1)/size, 0))
	return st, nil
}

// relieve gives the ballast up on a disk that reported that it is full, and reports whether
// there was one.
func (r *room) relieve() bool {
	b := r.lock()
	defer b.unlock()
	r.forget()
	b.look()
	above := r.available() - r.floor
	if !b.relieve() {
		return false
	}
	b.distrust(above, r.now())
	r.kick() // so that clean content makes room for another
	return true
}

// evictor is the caller's function that makes room. One goroutine at a time runs it.
type evictor struct {
	evict atomic.Pointer[func(need int64)] // nil: there is none

	running sync.Mutex
	need    atomic.Int64 // bytes beyond the floor that are wanted of the running call
	gone    atomic.Int64 // files that were evicted, ever
}

// run has room made, and reports whether any file was evicted meanwhile: if there is as
// little room as before, others may have taken it.
func (e *evictor) run(need int64) (gaveUp bool) {
	before := e.gone.Load() // of the running call, too: its room did not exist for the caller
	e.running.Lock()
	defer e.running.Unlock()
	evict := e.evict.Load()
	if evict == nil || *evict == nil {
		return false
	}
	e.need.Store(need)
	defer e.need.Store(0)
	(*evict)(need)
	return e.gone.Load() > before
}

// Relieve gives the ballast up, because of a write that must not fail and lacks space. It
// reports whether there was one: then another try may help.
func (s *Store) Relieve() bool { return s.room.relieve() }

// SetEvictor sets the function that makes room: it calls [Store.Evict] with the caller's rules.
// It is called with the bytes that are wanted beyond the floor, in one goroutine at a time, from
// every write and fetch: none of these may be called under a lock that it takes.
func (s *Store) SetEvictor(evict func(need int64)) { s.room.evictor.evict.Store(&evict) }
