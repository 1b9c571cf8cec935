package table

import "github.com/cockroachdb/pebble/v2"

// Snapshot is a table as it was at one moment, to be read while that goes on. It
// has the methods that read, and no lock of the table's caller is held over them;
// one goroutine uses it at a time. What would change it is ErrMisuse.
type Snapshot struct {
	*Table
	at *pebble.Snapshot
}

// Snapshot is the table as it was committed last. It costs next to nothing to
// take, and what has changed since takes room on the disk until its Close, which is
// to come before that of the table. There must be no changes to be committed.
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

// Close gives back what the snapshot holds. It answers nothing afterwards.
func (s *Snapshot) Close() error { return s.at.Close() }

// News counts changes of what the remote is known to have under names that were
// known before, whatever they were: who has seen it stand still has seen the whole
// of the remote's side stand still, but for names that a listing has added.
func (t *Table) News() uint64 { return t.news }

// isNews reports whether a name that was known has something else at the remote.
func isNews(old, now *Remote) bool {
	return old != now && (old == nil || now == nil || *old != *now)
}
