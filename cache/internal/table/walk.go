package table

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// pair is a key and its record.
type pair struct{ key, record []byte }

// The sizes of the pieces in which walk reads: small at first, since many
// stop early or change what follows.
const (
	pieceMin = 4
	pieceMax = 256
)

// piece reads at most max pairs of [lower, upper).
func (t *Table) piece(lower, upper []byte, max int) []pair {
	if t.Err() != nil {
		return nil
	}
	o := &pebble.IterOptions{LowerBound: lower, UpperBound: upper}
	iter, err := t.reader().NewIter(o)
	if err != nil {
		t.fail(err)
		return nil
	}
	pairs := make([]pair, 0, max)
	for ok := iter.First(); ok && len(pairs) < max; ok = iter.Next() {
		pairs = append(pairs, pair{bytes.Clone(iter.Key()), bytes.Clone(iter.Value())})
	}
	if err := iter.Close(); err != nil {
		t.fail(err)
		return nil
	}
	return pairs
}

// walk visits the pairs of [lower, upper) in order until visit says false. It
// goes over the table as it is at each step: visit may change, commit and
// abort.
func (t *Table) walk(lower, upper []byte, visit func(key, record []byte) bool) {
	for max := pieceMin; ; max = min(2*max, pieceMax) {
		pairs := t.piece(lower, upper, max)
		changes := t.changes
		for _, p := range pairs {
			if !visit(p.key, p.record) {
				return
			}
			lower = append(p.key, 0) // what comes right behind it
			if t.changes != changes {
				max = pieceMin / 2
				break
			}
		}
		if t.changes == changes && len(pairs) < max {
			return
		}
	}
}

// Names visits the names of a directory behind one ("" for all), in the order
// of their bytes, until visit says false: also those that are only at the
// backend. visit may change anything; names behind the present one are seen as
// they are by then.
func (t *Table) Names(dir Ino, after string, visit func(name string, n Name) bool) {
	prefix := nameKey(dir, "")
	lower := prefix
	if after != "" {
		lower = append(nameKey(dir, after), 0)
	}
	t.walk(lower, behind(prefix), func(key, record []byte) bool {
		n, err := decodeName(record)
		if err != nil {
			t.damaged("name %q in %d: %w", key[len(prefix):], dir, err)
			return false
		}
		return visit(string(key[len(prefix):]), n)
	})
}

// Get is a record of others; nil when there is none.
func (t *Table) Get(key string) []byte {
	record, closer := t.read(recordKey(key))
	if closer == nil {
		return nil
	}
	value := append([]byte{}, record...)
	if err := closer.Close(); err != nil {
		t.fail(err)
		return nil
	}
	return value
}

// Set keeps a record for others; nil takes it away.
func (t *Table) Set(key string, value []byte) {
	t.changes++
	if value == nil {
		t.delete(recordKey(key))
		return
	}
	t.write(recordKey(key), value)
}

// Scan visits the records whose keys begin with prefix and come behind after
// ("" for all), in order, until visit says false, which may change anything.
func (t *Table) Scan(prefix, after string, visit func(key string, value []byte) bool) {
	lower := recordKey(prefix)
	if from := append(recordKey(after), 0); after != "" && bytes.Compare(from, lower) > 0 {
		lower = from
	}
	t.walk(lower, behind(recordKey(prefix)), func(key, record []byte) bool {
		return visit(string(key[1:]), record)
	})
}
