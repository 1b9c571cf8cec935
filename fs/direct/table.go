package direct

import (
	"hash/maphash"
	"sync"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A table finds every inode by its number, its identity and its name.
//
// A number is made of a shard (6 bits), a place in the shard (24) and a
// generation (18), so that finding a record needs no map. A place that has
// used up its generations is retired, so no number is ever given twice.
// Generation 0 is the root's alone.
//
// Lock order: ring, shard, names. No two shards are locked together.
type table struct {
	seed   maphash.Seed
	shards [shardCount]shard
	names  [shardCount]nameShard
}

const (
	shardBits  = 6
	shardCount = 1 << shardBits
	placeBits  = 24
	chunkLen   = 256
	maxGen     = 1<<(48-shardBits-placeBits) - 1
)

// A shard holds the records of some identities.
type shard struct {
	mu      sync.Mutex
	ids     index // identity -> place
	chunks  []chunk
	partial []uint32 // chunks with a free record
	empty   int      // chunks with memory and no record in use
	live    int
}

// A chunk is a block of records that never move while one of them is in use.
type chunk struct {
	recs   *[chunkLen]inode // nil while none is in use
	free   uint32           // first free record plus one
	live   uint32
	gen    uint32 // generation of records when memory is allocated anew
	listed bool   // is in partial
}

func (t *table) init() { t.seed = maphash.MakeSeed() }

func split(ino wsfs.Ino) (sh, place, gen uint32) {
	return uint32(ino) & (shardCount - 1),
		uint32(ino>>shardBits) & (1<<placeBits - 1),
		uint32(ino >> (shardBits + placeBits))
}

func number(sh, place, gen uint32) wsfs.Ino {
	return wsfs.Ino(gen)<<(shardBits+placeBits) | wsfs.Ino(place)<<shardBits | wsfs.Ino(sh)
}

func (s *shard) at(place uint32) *inode {
	if c := place / chunkLen; c < uint32(len(s.chunks)) && s.chunks[c].recs != nil {
		return &s.chunks[c].recs[place%chunkLen]
	}
	return nil
}

// lock returns the inode of a number; false for one that is not in use.
func (t *table) lock(ino wsfs.Ino) (locked, bool) {
	sh, place, gen := split(ino)
	s := &t.shards[sh]
	s.mu.Lock()
	if n := s.at(place); n != nil && n.flags&flagLive != 0 && n.gen == gen {
		return locked{n, ino, t, s}, true
	}
	s.mu.Unlock()
	return locked{}, false
}

// find returns the inode of an identity, if one is known.
func (t *table) find(id ident) (locked, bool) {
	h := id.hash()
	s := &t.shards[h&(shardCount-1)]
	s.mu.Lock()
	if l, ok := t.findIn(s, id, h); ok {
		return l, true
	}
	s.mu.Unlock()
	return locked{}, false
}

// findIn is find in a locked shard, which stays locked.
func (t *table) findIn(s *shard, id ident, h uint64) (locked, bool) {
	place, ok := s.ids.find(uint32(h>>32), func(p uint32) bool {
		n := s.at(p)
		return n.id == id.id && n.birth == id.birth
	})
	if !ok {
		return locked{}, false
	}
	n := s.at(place)
	return locked{n, number(uint32(h)&(shardCount-1), place, n.gen), t, s}, true
}

// intern is find, making the record when there is none.
func (t *table) intern(id ident) (l locked, made bool) {
	h := id.hash()
	s := &t.shards[h&(shardCount-1)]
	s.mu.Lock()
	if l, ok := t.findIn(s, id, h); ok {
		return l, false
	}
	n, place := s.alloc()
	n.id, n.birth, n.flags = id.id, id.birth, flagLive
	s.ids.put(uint32(h>>32), place)
	s.live++
	return locked{n, number(uint32(h)&(shardCount-1), place, n.gen), t, s}, true
}

// root makes the record of RootIno, which is never removed.
func (t *table) root(id ident, h *handle) {
	sh, place, _ := split(wsfs.RootIno)
	s := &t.shards[sh]
	n, at := s.alloc()
	if at != place {
		panic("direct: the root is the first record of its shard")
	}
	n.gen = 0
	n.id, n.birth, n.refs, n.typ, n.flags = id.id, id.birth, 1, unix.S_IFDIR, flagLive
	n.more().pin = h
	s.live++
}

// alloc takes a free record, whose gen is set.
func (s *shard) alloc() (*inode, uint32) {
	if len(s.partial) == 0 {
		s.chunks = append(s.chunks, chunk{gen: 1})
		s.list(uint32(len(s.chunks) - 1))
	}
	ci := s.partial[len(s.partial)-1]
	c := &s.chunks[ci]
	switch {
	case c.recs == nil:
		c.fill()
	case c.live == 0:
		s.empty--
	}
	i := c.free - 1
	n := &c.recs[i]
	c.free = n.next
	c.live++
	if c.free == 0 {
		s.partial = s.partial[:len(s.partial)-1]
		c.listed = false
	}
	return n, ci*chunkLen + i
}

// fill makes the records of a chunk and lists all of them as free.
func (c *chunk) fill() {
	c.recs = new([chunkLen]inode)
	for i := range c.recs {
		c.recs[i].gen = c.gen
		c.recs[i].next = uint32(i) + 2
	}
	c.recs[chunkLen-1].next = 0
	c.free = 1
}

// free gives a record back, and with the last one of a chunk its memory. One empty chunk is
// kept, for a shard whose size goes up and down.
func (s *shard) free(n *inode, place uint32) {
	ci := place / chunkLen
	c := &s.chunks[ci]
	gen := n.gen + 1
	*n = inode{gen: gen, next: c.free}
	c.gen = max(c.gen, gen)
	c.live--
	if gen <= maxGen {
		c.free = place%chunkLen + 1
	}
	switch {
	case c.live == 0 && (c.gen > maxGen || s.empty > 0):
		c.recs, c.free = nil, 0
		if c.gen <= maxGen {
			s.list(ci)
		} else {
			s.unlist(ci)
		}
	default:
		if c.live == 0 {
			s.empty++
		}
		if c.free != 0 {
			s.list(ci)
		}
	}
}

func (s *shard) list(ci uint32) {
	if c := &s.chunks[ci]; !c.listed {
		c.listed = true
		s.partial = append(s.partial, ci)
	}
}

func (s *shard) unlist(ci uint32) {
	for i, p := range s.partial {
		if p == ci {
			s.partial = append(s.partial[:i], s.partial[i+1:]...)
			break
		}
	}
	s.chunks[ci].listed = false
}

// each calls f for every inode, with its shard locked.
func (t *table) each(f func(ino wsfs.Ino, n *inode)) {
	for sh := range t.shards {
		s := &t.shards[sh]
		s.mu.Lock()
		for ci := range s.chunks {
			if s.chunks[ci].recs == nil {
				continue
			}
			for i := range s.chunks[ci].recs {
				if n := &s.chunks[ci].recs[i]; n.flags&flagLive != 0 {
					f(number(uint32(sh), uint32(ci*chunkLen+i), n.gen), n)
				}
			}
		}
		s.mu.Unlock()
	}
}

// count is the number of known inodes.
func (t *table) count() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.live
		s.mu.Unlock()
	}
	return n
}

// watched reports whether a directory's names are watched.
func (t *table) watched(dir wsfs.Ino) bool {
	n, ok := t.lock(dir)
	if !ok {
		return false
	}
	defer n.unlock()
	return n.flags&flagWatched != 0
}

// reported reports whether changes of an inode's attributes reach the watch.
func (t *table) reported(ino wsfs.Ino) bool {
	n, ok := t.lock(ino)
	if !ok {
		return false
	}
	parent := n.parent
	can := n.name != "" && (n.flags&flagWatched != 0 || !n.directory())
	n.unlock()
	return can && t.watched(parent)
}

// referenced reports whether the kernel knows an inode.
func (t *table) referenced(ino wsfs.Ino) bool {
	n, ok := t.lock(ino)
	if !ok {
		return false
	}
	defer n.unlock()
	return n.refs > 0
}

// forget gives back references of the kernel.
func (t *table) forget(ino wsfs.Ino, count uint64) {
	if n, ok := t.lock(ino); ok {
		n.refs -= min(count, n.refs)
		n.settle()
	}
}
