package content

import "time"

// known is what the caller told of content: the clean in the order of its last
// use, the rest to be counted only.
type known struct {
	all   map[uint64]*entry
	head  entry // ring of the clean; head.next was used last
	ahead entry // ring of the clean that nobody has read, which goes first
	clean int64
	dirty int64
}

type entry struct {
	ino        uint64
	size       int64
	clean      bool
	uses       uint64 // how often it was opened
	prev, next *entry
}

func (k *known) init() {
	k.all = make(map[uint64]*entry)
	k.head.prev, k.head.next = &k.head, &k.head
	k.ahead.prev, k.ahead.next = &k.ahead, &k.ahead
}

func (k *known) set(ino uint64, size int64, clean bool) {
	e := k.all[ino]
	if e != nil && e.clean == clean && e.size == size {
		return
	}
	if e == nil {
		e = &entry{ino: ino}
		k.all[ino] = e
	} else {
		k.count(e, -e.size)
	}
	if e.clean != clean || e.next == nil {
		e.leave()
		if clean {
			k.head.push(e)
		}
	}
	e.size, e.clean = size, clean
	k.count(e, size)
}

func (k *known) count(e *entry, n int64) {
	if e.clean {
		k.clean += n
	} else {
		k.dirty += n
	}
}

// push makes an entry the first of a ring, of which head is the head.
func (head *entry) push(e *entry) {
	e.prev, e.next = head, head.next
	e.prev.next, e.next.prev = e, e
}

// leave takes an entry out of the ring, if it is in.
func (e *entry) leave() {
	if e.next != nil {
		e.prev.next, e.next.prev = e.next, e.prev
		e.prev, e.next = nil, nil
	}
}

// touch makes an inode the one that was used last.
func (k *known) touch(ino uint64) {
	e := k.all[ino]
	if e == nil {
		return
	}
	e.uses++
	if e.clean {
		e.leave()
		k.head.push(e)
	}
}

// unread makes clean content that nobody has read the next to be given up.
func (k *known) unread(ino uint64) {
	if e := k.all[ino]; e != nil && e.clean {
		e.leave()
		k.ahead.push(e)
	}
}

func (k *known) drop(ino uint64) {
	if e := k.all[ino]; e != nil {
		k.count(e, -e.size)
		e.leave()
		delete(k.all, ino)
	}
}

// Measured has Clean ask the disk for the size, of content that may be local in part.
const Measured = -1

// Clean says how much space the content of an inode takes, in bytes or Measured, and
// whether it may be given up because it can be fetched again. Only clean
// content counts against the limit. It may be called under locks of the
// caller's: an eviction that it makes necessary happens elsewhere.
func (s *Store) Clean(ino uint64, size int64, clean bool) {
	there := true
	if size == Measured {
		size, there = s.dirs.allocated(ino)
	}
	s.mu.Lock()
	if there {
		s.known.set(ino, size, clean)
	} else { // to give it up would free nothing, and take a record of that
		s.known.drop(ino)
	}
	over := s.over()
	s.mu.Unlock()
	if over {
		s.kick()
	}
}

// Unread says that the content of an inode was fetched, and that nobody has read
// it: it is given up before all that somebody has, until it is opened. It may be
// called under locks of the caller's.
func (s *Store) Unread(ino uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[ino] == nil {
		s.known.unread(ino)
	}
}

// kick has content evicted in the background: at once, or as soon as it is worth
// another try after one that found everything in use.
func (s *Store) kick() {
	if wait := s.idle.Load() - s.o.Now().UnixNano(); wait > 0 {
		s.kickAfter(time.Duration(wait))
		return
	}
	if s.kicked.Swap(true) || !s.work.begin() {
		return
	}
	go func() {
		defer s.work.done()
		s.kicked.Store(false)
		s.room.evictor.run(0)
		s.room.look(0) // makes the ballast again
	}()
}

// kickAfter looks after a while whether there still is too much: what was in use
// may not be any more, and nothing else may change by then.
func (s *Store) kickAfter(wait time.Duration) {
	if s.delayed.Swap(true) {
		return
	}
	time.AfterFunc(wait, func() {
		s.delayed.Store(false)
		s.Weigh()
	})
}

// Evict unlinks clean content, what was not used for longest first, until no
// more than the limit is left and the disk has its floor and what is wanted
// beyond. It leaves alone what is in use, and what somebody else may change.
//
// Each inode is put to may first, without any lock of the store. May takes the
// lock under which the caller opens content, and says no when the record of the
// inode or [Store.InUse] speaks against it; else it notes that the content is not
// here any more, durably enough for the caller, and says yes. When the inode gets
// content, or is opened, between that and the unlink, nothing is unlinked.
func (s *Store) Evict(may func(ino uint64) bool) (freed int64) {
	return s.evictBytes(s.room.short(s.room.evictor.need.Load()), may)
}

// EvictFor gives up so many bytes of clean content, however much room the disk says
// that it has: for a caller that holds the lock under which content is opened, which
// may must not take then. It waits for no other eviction.
func (s *Store) EvictFor(need int64, may func(ino uint64) bool) (freed int64) {
	return s.evictBytes(max(need, s.room.short(need)), may)
}

// evictBytes is Evict for what the disk was short of when that began: not every disk
// counts at once what was unlinked.
func (s *Store) evictBytes(short int64, may func(ino uint64) bool) (freed int64) {
	tried := make(map[uint64]bool)
	for {
		batch := s.candidates(tried)
		if len(batch) == 0 {
			if freed == 0 {
				s.idle.Store(s.o.Now().Add(roomFor).UnixNano())
			}
			if s.overLimit() {
				s.kickAfter(roomFor)
			}
			return freed
		}
		for _, e := range batch {
			if freed >= short && !s.overLimit() {
				return freed
			}
			tried[e.ino] = true
			freed += s.evictOne(e.entry, e.uses, may)
		}
	}
}

// candidate is content that may be evicted if it is not used any more often.
type candidate struct {
	*entry
	uses uint64
}

// candidates are clean files that are not in use, what nobody has read before the
// rest, and each oldest first.
func (s *Store) candidates(tried map[uint64]bool) []candidate {
	const most = 64
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []candidate
	for _, head := range []*entry{&s.known.ahead, &s.known.head} {
		for e := head.prev; e != head && len(out) < most; e = e.prev {
			if s.files[e.ino] == nil && !tried[e.ino] {
				out = append(out, candidate{e, e.uses})
			}
		}
	}
	return out
}

// InUse reports that somebody has a File of the inode.
func (s *Store) InUse(ino uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[ino] != nil
}

func (s *Store) overLimit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over()
}

// over reports whether there is more clean content than may stay. mu is held.
func (s *Store) over() bool {
	return s.o.Limit > 0 && s.known.clean > s.o.Limit || s.o.Mine != nil && s.known.clean > s.o.Mine(s.known.clean)
}

// Weigh begins an eviction if there is more clean content than may stay, because
// Options.Mine says less than before. It returns how much there is.
func (s *Store) Weigh() (clean int64) {
	s.mu.Lock()
	clean, over := s.known.clean, s.over()
	s.mu.Unlock()
	if over {
		s.kick()
	}
	return clean
}

// evictOne gives up one file, and says how many bytes that freed.
func (s *Store) evictOne(e *entry, uses uint64, may func(uint64) bool) int64 {
	size := s.dirs.quietSize(e.ino)
	if size < 0 || !may(e.ino) {
		return 0
	}
	n := s.dirs.lock(e.ino)
	defer n.unlock()
	s.mu.Lock()
	void := s.known.all[e.ino] != e || e.uses != uses || !e.clean || s.files[e.ino] != nil
	if !void {
		s.known.drop(e.ino)
		delete(s.deltas, e.ino)
		s.paths.forget(e.ino)
	}
	s.mu.Unlock()
	if void {
		return 0
	}
	if err := n.unlink(); err != nil {
		s.o.Log.Error("content: evict", "ino", e.ino, "error", err)
		return 0
	}
	return size
}
