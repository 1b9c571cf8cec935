package content

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// eviction evicts clean content, when there is more than may stay or the disk lacks room:
// content that was never read, then the least recently used.
type eviction struct {
	limit int64                   // of clean content; 0: none
	mine  func(clean int64) int64 // nil: all of it may stay
	now   func() time.Time
	log   *slog.Logger

	inodes *inodes
	dirs   *dirs
	paths  *paths
	room   *room
	work   *work

	kicked  atomic.Bool  // an eviction in the background is on its way
	idle    atomic.Int64 // until then, in ns, none is started: the last one freed nothing
	delayed atomic.Bool  // a check for too much after a while is on its way
}

func (e *eviction) init(s *Store) {
	e.limit, e.mine, e.now, e.log = s.o.Limit, s.o.Mine, s.o.Now, s.o.Log
	e.inodes, e.dirs, e.paths, e.room, e.work = &s.inodes, &s.dirs, &s.paths, &s.room, s.work
}

// over reports whether so much clean content is more than may stay.
func (e *eviction) over(clean int64) bool {
	return e.limit > 0 && clean > e.limit || e.mine != nil && clean > e.mine(clean)
}

// isOver reports whether there is more clean content than may stay, and how much there
// is.
func (e *eviction) isOver() (clean int64, over bool) {
	all := e.inodes.lock()
	defer all.unlock()
	return all.known.clean, e.over(all.known.clean)
}

// weigh begins an eviction if there is more clean content than may stay, and returns the amount.
func (e *eviction) weigh() int64 {
	clean, over := e.isOver()
	if over {
		e.kick()
	}
	return clean
}

// kick starts an eviction in the background: at once, or, after one that found everything
// in use, as soon as another try is worth while.
func (e *eviction) kick() {
	if wait := e.idle.Load() - e.now().UnixNano(); wait > 0 {
		e.kickAfter(time.Duration(wait))
		return
	}
	if e.kicked.Swap(true) || !e.work.begin() {
		return
	}
	go func() {
		defer e.work.done()
		e.kicked.Store(false)
		e.room.evictor.run(0)
		e.room.look(0) // makes the ballast again
	}()
}

// kickAfter checks after a while whether there still is too much: content that was in use
// may not be any more, and nothing else may change by then.
func (e *eviction) kickAfter(wait time.Duration) {
	if e.delayed.Swap(true) {
		return
	}
	time.AfterFunc(wait, func() {
		e.delayed.Store(false)
		e.weigh()
	})
}

// run evicts as many bytes as the disk was short of when run began: not every disk counts
// unlinked files as free at once.
func (e *eviction) run(short int64, may func(ino uint64) bool) (freed int64) {
	tried := make(map[uint64]bool)
	for {
		batch := e.inodes.candidates(tried)
		if len(batch) == 0 {
			if freed == 0 {
				e.idle.Store(e.now().Add(roomFor).UnixNano())
			}
			if _, over := e.isOver(); over {
				e.kickAfter(roomFor)
			}
			return freed
		}
		for _, c := range batch {
			if _, over := e.isOver(); freed >= short && !over {
				return freed
			}
			tried[c.ino] = true
			freed += e.one(c, may)
		}
	}
}

// one evicts one file, and says how many bytes that freed.
func (e *eviction) one(c candidate, may func(uint64) bool) int64 {
	size := e.dirs.quietSize(c.ino)
	if size < 0 || !may(c.ino) {
		return 0
	}
	n := e.dirs.lock(c.ino)
	defer n.unlock()
	if !e.inodes.evict(n, c) {
		return 0
	}
	e.paths.forget(n.ino)
	if err := n.unlink(); err != nil {
		e.log.Error("content: evict", "ino", n.ino, "error", err)
		return 0
	}
	e.room.evictor.gone.Add(1)
	return size
}

// Measured has Clean ask the disk for the size, of content that may be local in part.
const Measured = -1

// Clean says how much space the content of an inode takes, in bytes or Measured, and
// whether it may be evicted because it can be fetched again. Only clean content counts
// against the limit. It may be called under locks of the caller's: an eviction that it
// makes necessary happens in another goroutine.
func (s *Store) Clean(ino uint64, size int64, clean bool) {
	there := true
	if size == Measured {
		size, there = s.dirs.allocated(ino)
	}
	all := s.inodes.lock()
	if there {
		all.known.set(ino, size, clean)
	} else { // its eviction would free nothing, and take a record of that
		all.known.drop(ino)
	}
	over := s.eviction.over(all.known.clean)
	all.unlock()
	if over {
		s.eviction.kick()
	}
}

// Unread says that the content of an inode was fetched, and was never read: until it is opened it
// is evicted before content that was. It may be called under locks of the caller's.
func (s *Store) Unread(ino uint64) {
	all := s.inodes.lock()
	defer all.unlock()
	if all.files[ino] == nil {
		all.known.unread(ino)
	}
}

// Evict unlinks clean content, least recently used first, until no more than the limit is
// left and the disk has its floor and the bytes wanted beyond it. It leaves alone content
// that is in use, or that a program outside may change.
//
// Each inode is put to may first, without any lock of the store. May takes the lock under
// which the caller opens content, and says no when the record of the inode, or a File of
// it, speaks against it; else it notes that the content is not local any more, durably
// enough for the caller, and says yes. When the inode gets content, or is opened, between
// that and the unlink, nothing is unlinked.
func (s *Store) Evict(may func(ino uint64) bool) (freed int64) {
	return s.eviction.run(s.room.short(s.room.evictor.need.Load()), may)
}

// EvictFor evicts so many bytes of clean content, however much room the disk says that it
// has. It waits for no other eviction, and so not for the lock that the other's may takes:
// with a may that takes none the holder of that lock can call it.
func (s *Store) EvictFor(need int64, may func(ino uint64) bool) (freed int64) {
	return s.eviction.run(max(need, s.room.short(need)), may)
}

// Weigh begins an eviction if there is more clean content than may stay, because
// Options.Mine says less than before. It returns the amount.
func (s *Store) Weigh() (clean int64) { return s.eviction.weigh() }
