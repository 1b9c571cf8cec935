package content

import (
	"cmp"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// room is what is known of the disk's free space.
type room struct {
	budget atomic.Int64 // bytes that may be written before looking again
	until  atomic.Int64 // when to look again at the latest, in ns

	floor   int64
	ballast int64
	path    string // of the ballast

	mu   sync.Mutex // guards have, held while the disk is looked at
	have bool       // the ballast is there

	evicting sync.Mutex
	need     atomic.Int64 // bytes beyond the floor that the evictor is to make room for
}

// BallastName is the ballast of a store that shares none with others.
const BallastName = "ballast"

const (
	roomBudget = 64 << 20
	roomFor    = time.Second
)

// openRoom fits the floor and the ballast to the disk.
func (s *Store) openRoom() {
	r := &s.room
	r.floor, r.ballast = s.o.Floor, s.o.Ballast
	r.path = cmp.Or(s.o.BallastFile, filepath.Join(s.dir, BallastName))
	st, err := s.Statfs()
	total := int64(st.Blocks) * blockSize(&st)
	if err != nil {
		total = 0
	}
	if r.floor == 0 {
		r.floor = min(defaultFloor, total/50)
	}
	if r.ballast == 0 {
		r.ballast = min(defaultBallast, max(total/320, min(leastBallast, total/12)))
	}
	r.floor, r.ballast = max(r.floor, 0), max(r.ballast, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.have = r.there(); !r.have { // of another size, or half made
		_ = unix.Unlink(r.path)
	}
	if s.o.BallastFile != "" { // what it had of its own before
		_ = unix.Unlink(filepath.Join(s.dir, BallastName))
	}
	s.rebuild(s.available())
}

// there reports whether the ballast is, whoever made it.
func (r *room) there() bool {
	var st unix.Stat_t
	return r.ballast > 0 && unix.Lstat(r.path, &st) == nil && st.Size == r.ballast && st.Blocks*512 >= r.ballast
}

func blockSize(st *unix.Statfs_t) int64 {
	if st.Frsize > 0 {
		return st.Frsize
	}
	return st.Bsize
}

// available is how many bytes the disk has free for us. A disk that does not
// say is taken to have room: writes will tell.
func (s *Store) available() int64 {
	st, err := s.Statfs()
	if err != nil {
		s.o.Log.Warn("content: statfs", "error", err)
		return 1 << 62
	}
	return int64(st.Bavail) * blockSize(&st)
}

// Room says whether n more bytes may be written now: ENOSPC when the disk would
// have less than the floor left, whatever can be evicted. Everything here that
// writes or fetches asks by itself.
func (s *Store) Room(n int64) error {
	r := &s.room
	if s.o.Now().UnixNano() < r.until.Load() && r.budget.Add(-n) >= 0 {
		return nil
	}
	if s.look(n) {
		return nil
	}
	s.evict(n)
	if s.look(n) {
		return nil
	}
	return errFloor
}

// look asks the disk whether n bytes fit above the floor, and takes them out of
// the budget.
func (s *Store) look(n int64) bool {
	r := &s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	free := s.available()
	r.have = r.there() // another store may have given it up, or made it
	if s.rebuild(free) {
		free = s.available()
	}
	if r.have && free < r.ballast/4 {
		s.relieve()
	}
	left := free - r.reserve() - n
	if left < 0 {
		r.until.Store(0)
		return false
	}
	r.budget.Store(min(left, roomBudget))
	r.until.Store(s.o.Now().Add(roomFor).UnixNano())
	return true
}

// reserve is what must stay free: the floor, and what the ballast held that was
// given up for others than content. mu is held.
func (r *room) reserve() int64 {
	if r.have {
		return r.floor
	}
	return r.floor + r.ballast
}

// short is how many bytes the disk lacks for so many more of content, and for a
// ballast that was given up to be made again.
func (s *Store) short(need int64) int64 {
	r := &s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.floor
	if !r.have {
		want = r.enough()
	}
	return want + need - s.available()
}

// Relieve gives the ballast up, because something could not be written for want
// of space that must be. It reports whether there was one: then trying again
// may help.
func (s *Store) Relieve() bool {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.until.Store(0)
	s.room.have = s.room.there()
	return s.relieve()
}

// relieve is Relieve with room.mu held.
func (s *Store) relieve() bool {
	r := &s.room
	if !r.have {
		return false
	}
	if err := unix.Unlink(r.path); err != nil && err != unix.ENOENT {
		s.o.Log.Error("content: the disk is full, and the ballast cannot be removed", "error", err)
		return false
	}
	r.have = false
	s.o.Log.Warn("content: the disk is full; gave up the ballast", "bytes", r.ballast)
	s.kick() // for clean content to make room for another
	return true
}

// enough is the free space with which the ballast is made: as much as it takes is to
// spare then, or it would soon go again. mu is held.
func (r *room) enough() int64 { return r.floor + 2*r.ballast }

// rebuild makes the ballast when there is room for it, and reports whether it did.
// room.mu is held.
func (s *Store) rebuild(free int64) bool {
	r := &s.room
	if r.have || r.ballast == 0 || free < r.enough() {
		return false
	}
	fd, err := unix.Open(r.path, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		err = retry(func() error { return unix.Fallocate(fd, 0, 0, r.ballast) })
		unix.Close(fd)
	}
	if err != nil {
		_ = unix.Unlink(r.path)
		s.o.Log.Warn("content: no ballast", "error", err)
		return false
	}
	r.have = true
	return true
}
