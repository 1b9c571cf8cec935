package files

import (
	"context"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// disk is a store with so many bytes of clean content and of history.
type disk struct {
	weighed
	clean, kept, prunes int64
	stuck               bool // the history gives nothing back
}

func (d *disk) Evict(func(uint64) bool) int64 { return d.EvictFor(d.clean, nil) }
func (d *disk) KeptBytes() int64              { return d.kept }

func (d *disk) EvictFor(need int64, _ func(uint64) bool) int64 {
	freed := min(need, d.clean)
	d.clean -= freed
	return freed
}

func (d *disk) prune(most int64) bool {
	d.prunes++
	if !d.stuck {
		d.kept = max(most, d.kept-10) // a version at a time
	}
	return !d.stuck
}

// Room comes of what nothing leads to, then of clean content, and then of the history, of
// which no more goes than is needed.
func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		disk      disk
		need      int64
		ended     bool
		left, kep int64
	}{
		"nothing is missing":         {disk{clean: 5, kept: 100}, 0, false, 0, 100},
		"clean content is enough":    {disk{clean: 50, kept: 100}, 55, false, 0, 100},
		"the history goes too":       {disk{clean: 10, kept: 100}, 50, false, 0, 65},
		"all of it":                  {disk{clean: 10, kept: 15}, 90, false, 0, 0},
		"the history gives none":     {disk{clean: 10, kept: 100, stuck: true}, 50, false, 0, 100},
		"the working copy has ended": {disk{clean: 10, kept: 100}, 50, true, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			s, to, d := newScene(t), &shelved{}, c.disk
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ended {
				cancel()
			}
			r := Room{Tree: s.tree, Store: &d, Eviction: &Eviction{}, Unlinks: to.unlinks(s), Prune: d.prune, Context: ctx}
			r.Unlinks.Add(90, DeferredUnlink{Size: 5})
			r.Make(c.need)
			assert.Equal(t, d.clean, c.left, "clean content")
			assert.Equal(t, d.kept, c.kep, "history")
			assert.Equal(t, len(to.log), 2, "what nothing leads to:", to.log)
		})
	}
}

// Content is given up once the disk has the table that says it is clean.
func TestRoomFollowsTheTable(t *testing.T) {
	s, to := newScene(t), &shelved{}
	want := int64(9)
	check := func() { assert.Equal(t, s.afterPowerLoss(t).Size, want, "what the disk has") }
	r := Room{Tree: s.tree, Store: &checking{check: check}, Eviction: &Eviction{}, Unlinks: to.unlinks(s)}
	s.update(func(tx *tree.Tx) { tx.Edit(s.x).Size = 9 })
	r.Make(0)
	want = 10
	s.update(func(tx *tree.Tx) { tx.Edit(s.x).Size = want })
	s.update(func(tx *tree.Tx) { assert.False(t, r.MakeInCommit(tx), "it has nothing") })
}

// checking is a store that gives nothing up.
type checking struct {
	disk
	check func()
}

func (c *checking) Evict(func(uint64) bool) int64           { c.check(); return 0 }
func (c *checking) EvictFor(int64, func(uint64) bool) int64 { c.check(); return 0 }

// Clearing takes all that is clean, and what nothing leads to, and leaves the history.
func TestRoomIsCleared(t *testing.T) {
	s, to, d := newScene(t), &shelved{}, disk{clean: 70, kept: 9}
	r := Room{Tree: s.tree, Store: &d, Eviction: &Eviction{}, Unlinks: to.unlinks(s)}
	r.Unlinks.Add(90, DeferredUnlink{Size: 5})
	assert.Equal(t, r.Clear(), 75, "bytes freed")
	assert.Equal(t, d.kept, 9, "history")
}

// A commit that has no room gives up clean content within itself, unless it is about it.
func TestRoomInCommit(t *testing.T) {
	s := newScene(t)
	store := &asking{x: s.x}
	r := Room{Tree: s.tree, Store: store, Eviction: &Eviction{Open: NewOpenSet()}}
	s.update(func(tx *tree.Tx) { tx.Edit(s.x).State = table.Whole })
	s.update(func(tx *tree.Tx) {
		tx.Touch(table.Link{Dir: table.Root, Name: "f"})
		assert.False(t, r.MakeInCommit(tx), "of what the commit is about")
	})
	s.update(func(tx *tree.Tx) {
		assert.True(t, r.MakeInCommit(tx), "of what it is not about")
		assert.Equal(t, tx.Inode(s.x).State, table.None, "the record")
	})
}

// asking is a store of one file that goes when it may.
type asking struct {
	disk
	x table.Ino
}

func (a *asking) EvictFor(_ int64, may func(uint64) bool) int64 {
	if may(a.x) {
		return 1
	}
	return 0
}
