package table

import "github.com/cockroachdb/pebble/v2"

// Snapshot is a table as it was at one moment, to be read while the table changes. It has
// the methods that read, and no lock of the table's caller is held over them; one goroutine
// uses it at a time. A change of it is ErrMisuse.
type Snapshot struct {
	*Table
	at *pebble.Snapshot
}

// Snapshot is the table as it was committed last. It costs next to nothing to take, and
// later changes take room on the disk until its Close, which is to come before that of the
// table. There must be no changes to be committed.
func (t *Table) Snapshot() *Snapshot {
	if t.Changed() {
		t.misuse("a snapshot of a table that is being changed")
	}
	s := newTable(t.options)
	s.db, s.disk, s.dirty.now = t.db, t.disk, t.dirty.committed
	s.first.Store(t.first.Load())
	s.frozen = t.db.NewSnapshot()
	return &Snapshot{s, s.frozen}
}

// Close releases the snapshot. It answers nothing afterwards.
func (s *Snapshot) Close() error { return s.at.Close() }

// News counts changes of the remote side of names that were known before. While it stands
// still, the whole remote side has not changed, but for names that a listing has added.
func (t *Table) News() uint64 { return t.news }

// isNews reports whether the remote side of a known name has changed.
func isNews(old, now *Remote) bool {
	return old != now && (old == nil || now == nil || *old != *now)
}
