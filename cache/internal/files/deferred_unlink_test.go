package files

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// shelved is a history, and a disk, that write down what becomes of content.
type shelved struct {
	kept map[uint64]bool
	log  []string
}

func (s *shelved) say(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *shelved) IsKept(_ *tree.View, id uint64) bool { return s.kept[id] }
func (s *shelved) Keep(_ table.Ino, id uint64)         { s.say("keep as %d", id) }
func (s *shelved) Removed(table.Ino)                   { s.say("forget") }
func (s *shelved) remove(table.Ino)                    { s.say("remove") }

func (s *shelved) unlinks(on *scene) *DeferredUnlinks {
	return NewDeferredUnlinks(UnlinkOptions{Tree: on.tree, Remove: s.remove, History: s})
}

// Content goes into the history or away, once, unless its inode has content again.
func TestDeferredUnlink(t *testing.T) {
	const lost = 99
	for name, c := range map[string]struct {
		of    func(*scene) table.Ino
		one   DeferredUnlink
		want  []string
		freed int64
	}{
		"away":                     {func(*scene) table.Ino { return lost }, DeferredUnlink{Size: 5}, []string{"remove", "forget"}, 5},
		"into the history":         {func(*scene) table.Ino { return lost }, DeferredUnlink{Kept: 7}, []string{"keep as 7"}, 0},
		"which wants it no more":   {func(*scene) table.Ino { return lost }, DeferredUnlink{Kept: 8}, []string{"remove", "forget"}, 0},
		"of an inode without":      {func(s *scene) table.Ino { return s.x }, DeferredUnlink{}, []string{"remove", "forget"}, 0},
		"of one that has it again": {func(s *scene) table.Ino { s.update(func(tx *tree.Tx) { tx.Edit(s.x).State = table.Whole }); return s.x }, DeferredUnlink{}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, to := newScene(t), &shelved{kept: map[uint64]bool{7: true}}
			u := to.unlinks(s)
			ino := c.of(s)
			u.Add(ino, c.one)
			assert.True(t, u.Has(ino), "it has gone at once")
			assert.Equal(t, u.Run(), c.freed, "bytes freed")
			assert.Slice(t, to.log, c.want)
			assert.False(t, u.Has(ino), "it has still to go")
			assert.Equal(t, u.Run(), 0, "bytes freed again")
			assert.Slice(t, to.log, c.want)
		})
	}
}

// The loop runs once for all that comes while it waits.
func TestDeferredUnlinksWait(t *testing.T) {
	s, to := newScene(t), &shelved{}
	u := to.unlinks(s)
	u.Add(90, DeferredUnlink{})
	waits := 0
	u.Loop(t.Context(), func(context.Context, time.Duration) error {
		if waits++; waits == 2 {
			return errors.New("the end")
		}
		assert.Equal(t, len(to.log), 0, "it went before the wait")
		u.Add(91, DeferredUnlink{})
		return nil
	})
	assert.Equal(t, len(to.log), 4, "two are gone:", to.log)
}

// Content goes once the disk has the table that let it go.
func TestUnlinksFollowTheTable(t *testing.T) {
	s, to := newScene(t), &shelved{}
	s.update(func(tx *tree.Tx) { tx.Edit(s.x).State = table.Whole })
	assert.OK(t, s.tree.Sync())
	u := NewDeferredUnlinks(UnlinkOptions{Tree: s.tree, History: to, Remove: func(table.Ino) {
		to.say("remove")
		assert.Equal(t, s.afterPowerLoss(t).State, table.None, "the disk has it in use")
	}})
	s.update(func(tx *tree.Tx) {
		tx.Edit(s.x).State = table.None
		tx.Later(func() { u.Add(s.x, DeferredUnlink{}) })
	})
	assert.Equal(t, s.afterPowerLoss(t).State, table.Whole, "before a sync")
	u.Run()
	assert.Equal(t, len(to.log), 2, "it has gone:", to.log)
}
