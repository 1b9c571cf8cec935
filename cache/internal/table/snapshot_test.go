package table

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestSnapshot: a snapshot shows what was there when it was taken, by any way of
// reading, while the table goes on.
func TestSnapshot(t *testing.T) {
	tab := scratch(t)
	ino := addFile(tab, Root, "f")
	tab.SetName(Root, "f", Name{Ino: ino, Remote: &Remote{Ino: ino, ContentVersion: 1}, Seq: tab.NextSeq()})
	tab.Set("k", []byte("1"))
	commit(t, tab)
	s := tab.Snapshot()
	defer s.Close()
	look := func(t *Table) string {
		var names []string
		t.Names(Root, "", func(name string, n Name) bool {
			names = append(names, fmt.Sprint(name, n.Ino, n.baseIno()))
			return true
		})
		t.Dirty(0, func(_ uint64, l Link) bool {
			names = append(names, "dirty "+l.Name)
			return true
		})
		rec, there := t.Name(Root, "f")
		e, _ := t.Next(Root, FirstCookie-1)
		return fmt.Sprint(names, rec.Ino, there, t.Inode(ino) != nil, t.DirtyCount(), string(t.Get("k")), e.Name)
	}
	before := look(tab)
	done := make(chan string)
	go func() { // beside what follows
		var seen []string
		for range 50 {
			seen = append(seen, look(s.Table))
		}
		done <- slices.Compact(seen)[0]
	}()
	for i := range 50 {
		tab.SetName(Root, "g", Name{Ino: addFile(tab, Root, fmt.Sprint("n", i)), Remote: &Remote{Ino: ino, ContentVersion: 9}, Seq: tab.NextSeq()})
		tab.Set("k", []byte("2"))
		commit(t, tab)
	}
	tab.SetName(Root, "f", Name{})
	tab.SetName(Root, "g", Name{})
	tab.Drop(ino)
	commit(t, tab)
	assert.Equal(t, <-done, before, "what the snapshot shows")
	got := look(s.Table)
	assert.True(t, got == before && look(tab) != before, "the snapshot shows", got, "and was taken of", before)
	assert.Is(t, s.Err(), nil)
}

// TestSnapshotRefusesChanges: nothing can be changed in a snapshot, nor one be taken
// of half a change.
func TestSnapshotRefusesChanges(t *testing.T) {
	panics := func(what string, do func()) {
		defer func() {
			assert.False(t, recover() == nil, what, "is no misuse")
		}()
		do()
	}
	tab := scratch(t)
	ino := addFile(tab, Root, "f")
	panics("a snapshot of half a change", func() { tab.Snapshot() })
	commit(t, tab)
	s := tab.Snapshot()
	defer s.Close()
	panics("a name in a snapshot", func() { s.SetName(Root, "f", Name{}) })
	panics("a record in a snapshot", func() { s.Set("k", []byte("1")) })
	rec, _ := tab.Name(Root, "f")
	assert.Equal(t, rec.Ino, ino, rec)
}

// TestNews: what the backend is known to have under a name that was known is news
// when it is another, and nothing else is.
func TestNews(t *testing.T) {
	tab := scratch(t)
	ino := addFile(tab, Root, "f")
	steps := []struct {
		what string
		name string
		n    Name
		news bool
	}{
		{"a name that a listing adds", "new", Name{Remote: &Remote{ContentVersion: 1}}, false},
		{"what it is here", "f", Name{Ino: ino, Seq: tab.NextSeq()}, false},
		{"an attempt", "f", Name{Ino: ino, Attempt: &Attempt{Op: "1"}}, false},
		{"something at the backend", "f", Name{Ino: ino, Remote: &Remote{Ino: ino, ContentVersion: 1}}, true},
		{"the same once more", "f", Name{Ino: ino, Remote: &Remote{Ino: ino, ContentVersion: 1}}, false},
		{"another state", "f", Name{Ino: ino, Remote: &Remote{Ino: ino, ContentVersion: 2}}, true},
		{"nothing any more", "f", Name{Ino: ino}, true},
	}
	for _, s := range steps {
		before := tab.News()
		tab.SetName(Root, s.name, s.n)
		assert.Equal(t, tab.News() != before, s.news, s.what, "news")
	}
	commit(t, tab)
}
