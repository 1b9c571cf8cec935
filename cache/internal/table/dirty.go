package table

// dirtyIndex is a summary of the dirty order, kept without reading it.
type dirtyIndex struct {
	now, committed dirtyState
}

type dirtyState struct {
	count int
	// first is not above the first place in the order. Sent names leave deletions in the
	// database, which a search from 0 would wade through.
	first uint64
}

func (d *dirtyIndex) commit() { d.committed = d.now }
func (d *dirtyIndex) abort()  { d.now = d.committed }

// DirtyCount is how many names are dirty.
func (t *Table) DirtyCount() int { return t.dirty.now.count }

// Dirty visits the dirty names after a place in the order, until visit says false. visit
// may change anything: its changes after the present place are seen.
func (t *Table) Dirty(after uint64, visit func(seq uint64, l Link) bool) {
	from := max(after+1, t.dirty.now.first)
	if after == ^uint64(0) || t.dirty.now.count == 0 {
		return
	}
	known := after < max(t.dirty.now.first, 1) // no earlier place exists: the next one is the first
	t.walk(number([]byte{keyDirty}, from), behind([]byte{keyDirty}), func(key, record []byte) bool {
		l, err := decodeLink(record)
		if err != nil {
			t.damaged("place %d in the order: %w", tail(key), err)
			return false
		}
		if known {
			t.dirty.now.first, known = tail(key), false
		}
		return visit(tail(key), l)
	})
}

// setDirty moves a name in the order.
func (t *Table) setDirty(l Link, old, now uint64) {
	if old == now {
		return
	}
	if old != 0 {
		t.delete(dirtyKey(old))
		t.dirty.now.count--
	}
	if now != 0 {
		if t.options.Strict && t.has(dirtyKey(now)) {
			t.misuse("two names with Seq %d", now)
		}
		t.write(dirtyKey(now), encodeLink(l))
		t.dirty.now.count++
		t.dirty.now.first = min(t.dirty.now.first, now)
	}
}

func (t *Table) readDirty() {
	count, first := 0, uint64(0)
	t.walk([]byte{keyDirty}, behind([]byte{keyDirty}), func(key, _ []byte) bool {
		if count == 0 {
			first = tail(key)
		}
		count++
		return true
	})
	t.dirty.now = dirtyState{count: count, first: first}
	t.dirty.commit()
}
