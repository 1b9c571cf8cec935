package tree

import "github.com/wsmount/wsmount/cache/internal/table"

// A Snapshot is the tree as it was at one moment. Code that only reads works on it as on
// the tree itself, but without the lock, and in one goroutine at a time; the table refuses
// changes. No inode of it counts as in use. As long as it is open no name is forgotten.
type Snapshot struct {
	*View
	at   *table.Snapshot
	look *Observation
	news uint64
}

// Snapshot is the tree at this moment, to be given back by Close.
func (v *View) Snapshot() *Snapshot {
	o := v.guarded.options
	o.Pins = unpinned{}
	at := v.Reader.Snapshot()
	return &Snapshot{&View{at, &guarded{options: o}}, at, v.Observe(), v.News()}
}

// IsOvertaken reports whether the remote is known to have changed since. v is the current tree.
func (s *Snapshot) IsOvertaken(v *View) bool { return v.News() != s.news }

// Close gives back a snapshot that was taken of t.
func (s *Snapshot) Close(t *Tree) error {
	t.Lock().EndObservation(s.look)
	t.Unlock()
	return s.at.Close()
}
