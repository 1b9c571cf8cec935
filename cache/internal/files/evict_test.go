package files

import (
	"errors"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// weighed is a store with one file.
type weighed struct {
	x     table.Ino
	clean map[table.Ino]bool
}

func (w weighed) Clean(ino uint64, _ int64, clean bool) { w.clean[ino] = clean }

func (w weighed) Each(visit func(uint64, string, int64, bool)) error {
	visit(w.x, "", 0, false)
	return nil
}

// Content is given up when the remote has it under each of its names and nobody uses it,
// and the store hears the same.
func TestEviction(t *testing.T) {
	f := table.Link{Dir: table.Root, Name: "f"}
	name := func(change func(*table.Name)) func(*tree.Tx, table.Ino) {
		return func(tx *tree.Tx, _ table.Ino) {
			rec := tx.Record(f)
			change(&rec)
			tx.SetName(f, rec)
		}
	}
	for what, c := range map[string]struct {
		change    func(*tree.Tx, table.Ino)
		open, may bool
	}{
		"clean":                 {func(*tree.Tx, table.Ino) {}, false, true},
		"open":                  {func(*tree.Tx, table.Ino) {}, true, false},
		"being written":         {func(tx *tree.Tx, x table.Ino) { tx.Edit(x).Writing = true }, false, false},
		"suspect":               {func(tx *tree.Tx, x table.Ino) { tx.Edit(x).Suspect = true }, false, false},
		"changed":               {func(tx *tree.Tx, x table.Ino) { tx.Edit(x).ContentVersion++ }, false, false},
		"local only":            {name(func(r *table.Name) { r.Local = true }), false, false},
		"without an answer":     {name(func(r *table.Name) { r.Attempt = &table.Attempt{} }), false, false},
		"another on the remote": {name(func(r *table.Name) { r.Remote.Ino++ }), false, false},
		"none on the remote":    {name(func(r *table.Name) { r.Remote = nil }), false, false},
		"without a name":        {func(tx *tree.Tx, _ table.Ino) { tx.SetName(f, table.Name{}) }, false, false},
		"with a name not yet sent": {func(tx *tree.Tx, x table.Ino) {
			tx.SetName(table.Link{Dir: table.Root, Name: "g"}, table.Name{Ino: x})
		}, false, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t)
			s.update(func(tx *tree.Tx) {
				tx.Edit(s.x).State = table.Whole
				c.change(tx, s.x)
			})
			store := weighed{s.x, map[table.Ino]bool{}}
			open := NewOpenSet()
			if c.open {
				open.all[s.x] = &OpenInode{}
			}
			e := Eviction{Tree: s.tree, Store: store, Open: open,
				Update: func(do func(*tree.Tx) error) error { return s.tree.Update(do, nil) }}
			assert.OK(t, e.WeighAll(t.Context()))
			assert.Equal(t, store.clean[s.x], c.may, "it counts as clean")
			assert.Equal(t, e.MayEvict(s.x), c.may, "it may be given up")
			v := s.tree.Lock()
			defer s.tree.Unlock()
			assert.Equal(t, v.Inode(s.x).State == table.None, c.may, "it is gone")
		})
	}
}

// The lock of the tree is held meanwhile: no byte of a commit is read, and after a loss nothing is
// given up until Recheck has looked at each.
func TestGiveUpBesideReadsNoCommits(t *testing.T) {
	s := newScene(t)
	lost, asked := error(nil), []bool{}
	e := Eviction{Tree: s.tree, Open: NewOpenSet(), Lost: func(*tree.View) func(bool) error {
		return func(whole bool) error {
			asked = append(asked, whole)
			return lost
		}
	}}
	s.update(func(tx *tree.Tx) {
		tx.Edit(s.x).State = table.Whole
		assert.True(t, e.GiveUpBeside(tx)(s.x), "without a loss")
		lost = errors.New("an object is missing")
		tx.Edit(s.x).State = table.Whole
		assert.False(t, e.GiveUpBeside(tx)(s.x), "after a loss")
		lost = nil
		assert.False(t, e.GiveUpBeside(tx)(s.x), "after a loss that was not looked at again")
	})
	assert.Slice(t, asked, []bool{false, false}, "questions")
	assert.True(t, e.Recheck(false) && e.Why() == nil, "the loss is over")
	assert.Slice(t, asked, []bool{false, false, true}, "questions")
}

// A transaction that may fail yet gives nothing up that it is about.
func TestGiveUpBeside(t *testing.T) {
	s := newScene(t)
	e := Eviction{Open: NewOpenSet()}
	s.update(func(tx *tree.Tx) {
		tx.Edit(s.x).State = table.Whole
		assert.True(t, e.GiveUpBeside(tx)(s.x), "of what it is not about")
		tx.Touch(table.Link{Dir: table.Root, Name: "f"})
		assert.False(t, e.GiveUpBeside(tx)(s.x), "of what it is about")
	})
	g := table.Link{Dir: table.Root, Name: "g"}
	s.update(func(tx *tree.Tx) {
		tx.SetName(g, table.Name{Ino: s.x, Remote: &table.Remote{Ino: s.x, Kind: providers.KindFile, ContentVersion: version}})
	})
	s.update(func(tx *tree.Tx) {
		tx.SetLocal(g, 0, false, false)
		assert.False(t, e.GiveUpBeside(tx)(s.x), "of what it takes a name from")
	})
}
