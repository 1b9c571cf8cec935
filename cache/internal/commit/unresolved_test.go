package commit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
)

// sending are the inodes of which an attempt was begun.
type sending struct{ all []table.Ino }

func (s *sending) Sending(ino table.Ino, _ *table.Attempt) { s.all = append(s.all, ino) }
func (*sending) Succeeded(_, _ table.Ino)                  {}
func (*sending) Resurrected(table.Link, table.Ino)         {}
func (*sending) Wake()                                     {}

// notes is does for what notes something of a set.
func (s *scene) notes(f func(tx upload.Tx)) (sent []table.Ino) {
	s.Helper()
	rest := &sending{}
	s.does(func(tx *tree.Tx) { f(upload.Tx{Tx: tx, Rest: rest}) })
	return rest.all
}

// unresolved is what the table has of an open set.
func (s *scene) unresolved() (u Unresolved, ok bool, err error) {
	v := s.tree.Lock()
	defer s.tree.Unlock()
	return ReadUnresolved(v.Get)
}

// threeNew is a scene with a set of three new files, of which the table has n.
func threeNew(t *testing.T, n int) (s *scene, u Unresolved) {
	t.Helper()
	s = newScene(t)
	for i := range table.Ino(3) {
		s.makes(10+i, file, table.Link{Dir: table.Root, Name: fmt.Sprint(i)})
	}
	s.collect(func(set *Set) { u = set.Unresolved("op-1") })
	assert.Equal(t, len(u.Names), 3, "names")
	assert.True(t, u.IsMade(), "made")
	s.notes(func(tx upload.Tx) {
		assert.True(t, Unresolved{}.IsRecorded(tx.View), "nothing is recorded")
		assert.False(t, u.IsRecorded(tx.View) || IsUnresolved(tx.View), "before its record")
		assert.OK(t, u.Record(tx))
		assert.True(t, u.IsRecorded(tx.View) && IsUnresolved(tx.View), "after its record")
		assert.False(t, Unresolved{}.IsRecorded(tx.View) || Unresolved{Op: "op-2"}.IsRecorded(tx.View), "another")
	})
	for i, name := range u.Names[:n] {
		piece := assert.Of(NewPiece(i, []*Planned{name})).OK(t)
		assert.Slice(t, s.notes(func(tx upload.Tx) { u.Add(tx, piece) }), []table.Ino{name.Ino}, "sends")
	}
	return s, u
}

// What the table has of a set is what is read of it, in order, however much of it is there;
// when it is forgotten nothing of it is left.
func TestUnresolved(t *testing.T) {
	for n := range 4 {
		s, u := threeNew(t, n)
		got, ok, err := s.unresolved()
		assert.True(t, ok && err == nil && !got.IsMade(), "unresolved", ok, err)
		assert.Equal(t, got.Op, u.Op)
		assert.Equal(t, got.Until, u.Until)
		assert.Equal(t, len(got.Names), n, "names")
		for i, name := range got.Names {
			want := u.Names[i]
			assert.Equal(t, *name, Planned{Link: want.Link, Ino: want.Ino, Kind: want.Kind, Gen: want.Gen, AttrGen: want.AttrGen, Index: want.Index, Before: want.Before, After: want.After})
			s.notes(func(tx upload.Tx) {
				a := tx.Record(name.Link).Attempt
				assert.True(t, a != nil && a.Op == u.Op && a.Kind == upload.AttemptSet && a.ContentVersion == name.Gen, "attempt", a)
				Unresolved{Op: "op-2"}.EndAttempt(tx, name.Link)
				assert.False(t, tx.Record(name.Link).Attempt == nil, "another set ended it")
				got.EndAttempt(tx, name.Link)
				assert.True(t, tx.Record(name.Link).Attempt == nil, "it is not ended")
			})
		}
		s.notes(func(tx upload.Tx) { Forget(tx) })
		_, ok, err = s.unresolved()
		assert.True(t, !ok && err == nil, "forgotten", err)
		s.notes(func(tx upload.Tx) {
			tx.Scan("engine/", "", func(key string, _ []byte) bool { t.Error(key, "is left"); return true })
		})
	}
}

// A set counts once, whoever notes it, and the next one counts too.
func TestCountOnce(t *testing.T) {
	s, _ := threeNew(t, 1)
	var counts []bool
	count := func(tx upload.Tx) { counts = append(counts, CountOnce(tx)) }
	s.notes(count)
	s.notes(count)
	s.notes(Forget)
	s.notes(count)
	assert.Slice(t, counts, []bool{true, false, true})
}

// A damaged piece costs its names alone, a damaged record the operation, and both are said.
func TestDamagedRecord(t *testing.T) {
	for key, want := range map[string]string{keySet: "\"\" 012", pieceKey(1): "\"op-1\" 02"} {
		s, _ := threeNew(t, 3)
		s.notes(func(tx upload.Tx) { tx.Set(key, []byte("{")) })
		u, ok, err := s.unresolved()
		names := ""
		for _, p := range u.Names {
			names += p.Link.Name
		}
		assert.Equal(t, fmt.Sprintf("%q %s", u.Op, names), want, key)
		assert.True(t, ok && err != nil && (key == keySet || strings.Contains(err.Error(), "piece 1")), "error", err)
	}
}

// Versions before had all names in the record.
func TestNamesInTheRecord(t *testing.T) {
	s, u := threeNew(t, 0)
	data := assert.Of(json.Marshal(u)).OK(t)
	s.notes(func(tx upload.Tx) { tx.Set(keySet, data) })
	got, ok, err := s.unresolved()
	assert.True(t, ok && err == nil, "unresolved", err)
	assert.True(t, slices.EqualFunc(got.Names, u.Names, func(a, b *Planned) bool { return a.Link == b.Link && a.Ino == b.Ino }), "names", got.Names)
}
