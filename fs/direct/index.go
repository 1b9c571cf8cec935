package direct

// An index is a hash table of small numbers. It keeps eight bytes for each, which is why it is
// not a Go map: a volume has two for every file that the kernel knows. It stores a tag (hash
// bits) beside each number and leaves it to the caller to compare the record behind the number.
// The owner locks.
type index struct {
	slots []slot // length is a power of two, or nil
	n     int
}

// A slot is empty when ref is 0; ref is the number plus one.
type slot struct{ tag, ref uint32 }

const minIndex = 8

// find returns the first number under tag for which match is true.
func (x *index) find(tag uint32, match func(num uint32) bool) (uint32, bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	mask := uint32(len(x.slots) - 1)
	for i := tag & mask; x.slots[i].ref != 0; i = (i + 1) & mask {
		if s := x.slots[i]; s.tag == tag && match(s.ref-1) {
			return s.ref - 1, true
		}
	}
	return 0, false
}

// put adds a number. The pair must not be in the index.
func (x *index) put(tag, num uint32) {
	if (x.n+1)*4 > len(x.slots)*3 {
		x.resize(max(minIndex, len(x.slots)*2))
	}
	x.insert(slot{tag, num + 1})
	x.n++
}

func (x *index) insert(s slot) {
	mask := uint32(len(x.slots) - 1)
	i := s.tag & mask
	for x.slots[i].ref != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = s
}

// del removes a pair; a missing pair is no error.
func (x *index) del(tag, num uint32) {
	if len(x.slots) == 0 {
		return
	}
	mask := uint32(len(x.slots) - 1)
	i := tag & mask
	for x.slots[i] != (slot{tag, num + 1}) {
		if x.slots[i].ref == 0 {
			return
		}
		i = (i + 1) & mask
	}
	x.closeGap(i, mask)
	x.n--
	if len(x.slots) > minIndex && x.n*8 < len(x.slots) {
		x.resize(len(x.slots) / 2)
	}
}

// closeGap empties slot i and moves later ones of the same run back, so that no search stops
// too early.
func (x *index) closeGap(i, mask uint32) {
	for j := (i + 1) & mask; x.slots[j].ref != 0; j = (j + 1) & mask {
		if home := x.slots[j].tag & mask; (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = slot{}
}

func (x *index) resize(size int) {
	old := x.slots
	x.slots = make([]slot, size)
	for _, s := range old {
		if s.ref != 0 {
			x.insert(s)
		}
	}
}
