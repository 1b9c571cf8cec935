package content

// known is the caller's account of content: the clean in the order of its last use, the
// rest to be counted only.
type known struct {
	all   map[uint64]*entry
	head  entry // ring of the clean; head.next was used last
	ahead entry // ring of the clean that was never read, which goes first
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

// unread makes clean content that was never read the next to be evicted.
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
