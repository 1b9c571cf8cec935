package table

// resident keeps decoded inodes that the database has too, up to a bound. What
// was not asked for since the hand last passed makes room (the clock
// algorithm): one bit per inode, no list to reorder on a hit.
//
// It is not a job for ristretto: an entry that was put must be found by the
// next call, or each change would be decoded again; and one lock is held over
// every call anyway, which leaves nothing for its lock-free buffers to win.
type resident struct {
	at    map[Ino]int
	slots []slot
	max   int
	hand  int
}

type slot struct {
	ino  Ino // 0: free
	n    *Inode
	used bool
}

func (r *resident) init(max int) {
	r.at, r.max = map[Ino]int{}, max
}

func (r *resident) get(ino Ino) *Inode {
	i, ok := r.at[ino]
	if !ok {
		return nil
	}
	r.slots[i].used = true
	return r.slots[i].n
}

func (r *resident) put(ino Ino, n *Inode) {
	i, ok := r.at[ino]
	if !ok {
		i = r.room()
		r.at[ino] = i
	}
	r.slots[i] = slot{ino: ino, n: n, used: ok}
}

// room is a free slot.
func (r *resident) room() int {
	if len(r.slots) < r.max {
		r.slots = append(r.slots, slot{})
		return len(r.slots) - 1
	}
	for {
		r.hand = (r.hand + 1) % len(r.slots)
		s := &r.slots[r.hand]
		if !s.used {
			delete(r.at, s.ino)
			return r.hand
		}
		s.used = false
	}
}

func (r *resident) drop(ino Ino) {
	if i, ok := r.at[ino]; ok {
		delete(r.at, ino)
		r.slots[i] = slot{}
	}
}
