package massdelete

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func newTree(t *testing.T) (*tree.Tree, func() *tree.Tree) {
	t.Helper()
	dir := t.TempDir()
	open := func() *table.Table {
		tab := assert.Of(table.Open(dir, table.Options{})).OK(t)
		return tab
	}
	tab := open()
	t.Cleanup(func() { tab.Close() })
	return tree.New(tab, tree.Options{}), func() *tree.Tree {
		tab.Close()
		tab = open()
		return tree.New(tab, tree.Options{})
	}
}

func update(t *testing.T, tr *tree.Tree, f func(*tree.Tx)) {
	t.Helper()
	err := tr.Update(func(tx *tree.Tx) error {
		f(tx)
		return nil
	}, nil)
	assert.OK(t, err)
}

// holds has the remote hold files in a directory, under inodes of no other.
func holds(tx *tree.Tx, dir table.Ino, files int) {
	for i := range files {
		ino := tx.Alloc()
		tx.Put(ino, &table.Inode{Mode: syscall.S_IFREG})
		tx.SetName(table.Link{Dir: dir, Name: fmt.Sprint("f", i)}, table.Name{Remote: &table.Remote{Ino: ino, Kind: providers.KindFile}})
	}
}

// The root has 4 files and the directory d, which has 25; or d was never listed.
func TestTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		d      Deletion
		unseen bool // d was never listed
		says   string
		asks   bool
	}{
		"nothing":                       {d: Deletion{}},
		"few":                           {d: Deletion{Names: 10}},
		"less than half":                {d: Deletion{Names: 14}},
		"half":                          {d: Deletion{Names: 15}},
		"more than half":                {d: Deletion{Names: 16}, says: "16 of 30"},
		"of more than is known":         {d: Deletion{Names: 16, More: 10}},
		"of which some are gone":        {d: Deletion{Names: 20, Done: 12}},
		"so many are gone":              {d: Deletion{Names: 40, Done: 40}, says: "40 of 70"},
		"all of the root":               {d: Deletion{Names: 2, RootBefore: 2}, says: "all 2 entries of the root"},
		"the only file":                 {d: Deletion{Names: 1, RootBefore: 1}},
		"the only directory":            {d: Deletion{Names: 4, RootBefore: 1}, says: "the one directory of the root would be deleted, with 3 entries"},
		"what the root has changes":     {d: Deletion{Names: 2, RootBefore: 2, RootAfter: 1}},
		"what is not known":             {d: Deletion{Names: 16, Done: 16}, unseen: true, asks: true, says: "16 of 21"},
		"what is not known, and little": {d: Deletion{Names: 2}, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			tr, _ := newTree(t)
			update(t, tr, func(tx *tree.Tx) {
				l := table.Link{Dir: table.Root, Name: "d"}
				tx.Put(table.Root, &table.Inode{Loaded: true, Mode: syscall.S_IFDIR})
				d := tx.Alloc()
				tx.Put(d, &table.Inode{Loaded: !c.unseen, Mode: syscall.S_IFDIR})
				tx.SetName(l, table.Name{Ino: d, Remote: &table.Remote{Ino: d, Kind: providers.KindDir}})
				holds(tx, table.Root, 4)
				if !c.unseen {
					holds(tx, d, 25)
				}
			})
			v := tr.Lock()
			defer tr.Unlock()
			assert.Equal(t, CountRoot(v), 5, "the root has ... entries")
			says, unseen := TooMuch(v, c.d)
			if c.says == "" && says != "" || !strings.Contains(says, c.says) || (len(unseen) > 0) != c.asks {
				t.Errorf("says %q, and %v is unseen; want %q, %v", says, unseen, c.says, c.asks)
			}
		})
	}
}

// What is halted stands until it was confirmed and done, or is not too much any more, in
// the next run too if it was kept.
func TestGuard(t *testing.T) {
	tr, again := newTree(t)
	now := time.Unix(1e9, 0)
	var g Guard
	check := func(s Side, reason string, isNew, refused bool) {
		t.Helper()
		got, err := g.Check(s, reason, 7, now)
		assert.True(t, got == isNew && errors.Is(err, ErrHalted) == refused && (!refused || strings.Contains(err.Error(), reason)), s, "for", reason, "new", got, err)
	}
	next := func() {
		t.Helper()
		if g.IsUnkept() {
			update(t, tr, func(tx *tree.Tx) {
				assert.Is(t, g.Keep(tx), nil)
			})
		}
		tr, g = again(), Guard{}
		v := tr.Lock()
		defer tr.Unlock()
		g.Load(v)
	}
	stand := func(want int) {
		t.Helper()
		assert.Equal(t, len(g.All()), want, "halts stand")
	}

	check(Pull, "", false, false)
	check(Pull, "30 of 40", true, true)
	check(Pull, "30 of 40", false, true)
	check(Pull, "31 of 40", true, true)
	check(Commit, "5 of 5", true, true)
	stand(2)
	next()
	stand(2)
	h := g.Halted(Pull)
	assert.True(t, h != nil && h.Reason == "31 of 40" && !h.Commit && h.Deleted == 7 && h.Since.Equal(now), "the next run has", h)

	pull, commit := g.Confirm()
	stand(1)
	assert.True(t, pull && commit && g.IsConfirmed(Pull) && g.IsConfirmed(Commit), "confirmed: pull", pull, "commit", commit)
	check(Pull, "31 of 40", false, false)
	over := g.Pass(Pull)
	assert.True(t, over == nil, "a halt that was confirmed is over by itself:", over)
	check(Pull, "31 of 40", true, true) // a word is for one time
	over = g.Pass(Pull)
	assert.True(t, over != nil && over.Reason == "31 of 40", "over is", over)
	g.Pass(Commit)
	next()
	stand(0)
	assert.True(t, !g.IsConfirmed(Pull) && !g.IsConfirmed(Commit), "the next run has a word that was used up")
	pull, commit = g.Confirm()
	assert.True(t, !pull && !commit, "something was confirmed that was not halted")
}

// A note that cannot be read is as if nothing had been halted.
func TestDamagedNote(t *testing.T) {
	tr, _ := newTree(t)
	update(t, tr, func(tx *tree.Tx) { tx.Set(key, []byte("{")) })
	v := tr.Lock()
	defer tr.Unlock()
	var g Guard
	if g.Load(v); len(g.All()) > 0 {
		t.Errorf("halted: %+v", g.All())
	}
}
