package history

import (
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// Content of a record is in the store under the id of the record, or of a copy; both say so,
// until it is given up, or the record is dropped.
func TestKept(t *testing.T) {
	for _, copied := range []bool{false, true} {
		in(t, func(tx *tree.Tx) {
			l := table.Link{Dir: 7, Name: "f"}
			at := appended(tx, Record{Change: Written, Dir: l.Dir, Name: l.Name, Size: 300})
			id := at
			if copied {
				id = tx.NextSeq()
			}
			Keep(tx, at, Get(tx, at), id)
			r := Get(tx, at)
			assert.True(t, r.Kept && r.KeptID(at) == id, "kept, copied:", copied)
			size, of := KeptOf(tx.Get(KeptKey(id)))
			assert.True(t, size == 300 && of == at, "what the store has is of", of)

			assert.Equal(t, GiveUp(tx, id, tx.Get(KeptKey(id))), 300, "given up")
			r = Get(tx, at)
			assert.True(t, !r.Kept && r.Copy == 0 && tx.Get(KeptKey(id)) == nil, "it is kept still")

			Keep(tx, at, r, id)
			dropped, size := Drop(tx, at, r)
			assert.True(t, dropped == id && size == 300, "dropped:", dropped, size)
			assert.True(t, Get(tx, at) == nil && tx.Get(KeptKey(id)) == nil && HeadOf(tx, l) == Head{}, "it is there still")
		})
	}
}

// What was kept anew under another id is not given up with the first.
func TestGiveUpOfAnother(t *testing.T) {
	in(t, func(tx *tree.Tx) {
		at := appended(tx, Record{Change: Written, Dir: 7, Name: "f"})
		Keep(tx, at, Get(tx, at), at)
		old, id := tx.Get(KeptKey(at)), tx.NextSeq()
		Keep(tx, at, Get(tx, at), id)
		GiveUp(tx, at, old)
		r := Get(tx, at)
		assert.True(t, r.Kept && r.KeptID(at) == id, "the other is not kept any more")
	})
}

// Of a record that is not the last of its name, or cannot be read, nothing else is dropped.
func TestDrop(t *testing.T) {
	in(t, func(tx *tree.Tx) {
		l := table.Link{Dir: 7, Name: "f"}
		first := appended(tx, Record{Change: Written, Dir: l.Dir, Name: l.Name})
		last := appended(tx, Record{Change: Written, Dir: l.Dir, Name: l.Name})
		at, _ := Drop(tx, first, Get(tx, first))
		assert.True(t, at == 0 && HeadOf(tx, l).ID == last, "dropped content:", at)
		tx.Set(Key(last), []byte("nonsense"))
		at, _ = Drop(tx, last, Get(tx, last))
		assert.True(t, at == 0 && tx.Get(Key(last)) == nil, "it is there still")
	})
}
