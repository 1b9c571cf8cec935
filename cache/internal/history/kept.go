package history

import (
	"fmt"
	"strconv"
	"strings"
)

// Keep notes in the record r, of id at, that its content is in the store under an id.
func Keep(tx Writer, at uint64, r *Record, id uint64) {
	r.Kept, r.Copy = true, 0
	if id != at {
		r.Copy = id
	}
	Put(tx, at, r)
	tx.Set(KeptKey(id), fmt.Appendf(nil, "%x %x", r.Size, at))
}

// KeptOf is the meaning of the value of a KeptKey: the size of the content, and its record.
func KeptOf(value []byte) (size int64, at uint64) {
	a, b, _ := strings.Cut(string(value), " ")
	size, _ = strconv.ParseInt(a, 16, 64)
	at, _ = strconv.ParseUint(b, 16, 64)
	return size, at
}

// GiveUp says that the store does not have content any more that it had under an id, with this
// value of its key.
func GiveUp(tx Writer, id uint64, value []byte) (size int64) {
	size, at := KeptOf(value)
	tx.Set(KeptKey(id), nil)
	if r := Get(tx, at); r != nil && r.Kept && r.KeptID(at) == id {
		r.Kept, r.Copy = false, 0
		Put(tx, at, r)
	}
	return size
}

// Drop removes a record, which is nil when it cannot be read, and returns the id under which the
// store has its content, 0 for none.
func Drop(tx Writer, id uint64, r *Record) (at uint64, size int64) {
	tx.Set(Key(id), nil)
	if r == nil {
		return 0, 0
	}
	if HeadOf(tx, r.Link()).ID == id {
		tx.Set(HeadKey(r.Link()), nil)
	}
	if !r.Kept {
		return 0, 0
	}
	at = r.KeptID(id)
	tx.Set(KeptKey(at), nil)
	return at, r.Size
}
