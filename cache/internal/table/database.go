package table

import (
	"bytes"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// database is the records on the disk, and before them the changes at hand, which all reads
// see. Once it has failed it answers nothing.
type database struct {
	failure
	db      *pebble.DB
	frozen  *pebble.Snapshot // of a Snapshot: its reads go to it
	batch   *pebble.Batch    // encoded changes; nil: none
	changes uint64           // counts changes that may make an iteration stale
}

// pair is a key and its record.
type pair struct{ key, record []byte }

// The sizes of the pieces in which walk reads: small at first, since many walks stop early
// or change the following records.
const (
	pieceMin = 4
	pieceMax = 256
)

// writable is the batch of changes. It can be read, too.
func (d *database) writable() *pebble.Batch {
	if d.frozen != nil {
		d.misuse("a change of a snapshot")
	}
	if d.batch == nil {
		d.batch = d.db.NewIndexedBatch()
	}
	return d.batch
}

func (d *database) write(key, value []byte) {
	if err := d.writable().Set(key, value, nil); err != nil {
		d.fail(err)
	}
}

func (d *database) delete(key []byte) {
	if err := d.writable().Delete(key, nil); err != nil {
		d.fail(err)
	}
}

// read finds a record, which is valid until closer is closed. A nil closer:
// there is none.
func (d *database) read(key []byte) (record []byte, closer io.Closer) {
	if d.Err() != nil {
		return nil, nil
	}
	record, closer, err := d.reader().Get(key)
	if err != nil {
		if !errors.Is(err, pebble.ErrNotFound) {
			d.fail(err)
		}
		return nil, nil
	}
	return record, closer
}

// reader is where the table reads from, with all changes that are at hand.
func (d *database) reader() pebble.Reader {
	switch {
	case d.batch != nil:
		return d.batch
	case d.frozen != nil:
		return d.frozen
	}
	return d.db
}

func (d *database) has(key []byte) bool {
	_, closer := d.read(key)
	if closer == nil {
		return false
	}
	if err := closer.Close(); err != nil {
		d.fail(err)
	}
	return true
}

// piece reads at most max pairs of [lower, upper).
func (d *database) piece(lower, upper []byte, max int) []pair {
	if d.Err() != nil {
		return nil
	}
	o := &pebble.IterOptions{LowerBound: lower, UpperBound: upper}
	iter, err := d.reader().NewIter(o)
	if err != nil {
		d.fail(err)
		return nil
	}
	pairs := make([]pair, 0, max)
	for ok := iter.First(); ok && len(pairs) < max; ok = iter.Next() {
		pairs = append(pairs, pair{bytes.Clone(iter.Key()), bytes.Clone(iter.Value())})
	}
	if err := iter.Close(); err != nil {
		d.fail(err)
		return nil
	}
	return pairs
}

// walk visits the pairs of [lower, upper) in order until visit says false. It
// reads the table as it is at each step: visit may change, commit and
// abort.
func (d *database) walk(lower, upper []byte, visit func(key, record []byte) bool) {
	for max := pieceMin; ; max = min(2*max, pieceMax) {
		pairs := d.piece(lower, upper, max)
		changes := d.changes
		for _, p := range pairs {
			if !visit(p.key, p.record) {
				return
			}
			lower = append(p.key, 0) // the next key after it
			if d.changes != changes {
				max = pieceMin / 2
				break
			}
		}
		if d.changes == changes && len(pairs) < max {
			return
		}
	}
}

// apply gives changes to Pebble. On a frozen disk it seems to succeed.
func (d *database) apply(b *pebble.Batch) error {
	if err := errors.Join(b.Commit(pebble.Sync), b.Close()); err != nil {
		d.fail(err)
	}
	return d.Err()
}
