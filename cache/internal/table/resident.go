package table

// resident keeps decoded records that the database has too, up to a bound. A record that
// was not asked for since the hand last passed makes room (the clock algorithm): one bit
// per record, no list to reorder on a hit.
//
// It is not a job for ristretto: a record that was put must be found by the
// next call, or each change would be decoded again, and one that was dropped
// must not; and one lock is held over every call anyway, which leaves nothing
// for its lock-free buffers to win.
type resident[K comparable, V any] struct {
	at    map[K]int
	slots []slot[K, V]
	max   int
	hand  int
}

type slot[K comparable, V any] struct {
	key  K // the zero value: free
	v    V
	used bool
}

func (r *resident[K, V]) init(max int) {
	r.at, r.max = map[K]int{}, max
}

// get is the record of a key, the zero value when it is not kept.
func (r *resident[K, V]) get(key K) (v V, ok bool) {
	i, ok := r.at[key]
	if !ok {
		return v, false
	}
	r.slots[i].used = true
	return r.slots[i].v, true
}

func (r *resident[K, V]) put(key K, v V) {
	i, ok := r.at[key]
	if !ok {
		i = r.room()
		r.at[key] = i
	}
	r.slots[i] = slot[K, V]{key: key, v: v, used: ok}
}

// room is a free slot.
func (r *resident[K, V]) room() int {
	if len(r.slots) < r.max {
		r.slots = append(r.slots, slot[K, V]{})
		return len(r.slots) - 1
	}
	for {
		r.hand = (r.hand + 1) % len(r.slots)
		s := &r.slots[r.hand]
		if !s.used {
			delete(r.at, s.key)
			return r.hand
		}
		s.used = false
	}
}

func (r *resident[K, V]) drop(key K) {
	if i, ok := r.at[key]; ok {
		delete(r.at, key)
		r.slots[i] = slot[K, V]{}
	}
}
