package tree

import (
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A snapshot stays as it was, and says whether what the remote has does, too. Whatever the
// kernel uses is of the present, and names are not forgotten as long as it is there.
func TestSnapshot(t *testing.T) {
	const d, f = 10, 11
	tr, l := newTree(t, Options{Attributes: true, Pins: pinned{f: true}}), link(d, "f")
	tr.do(t, func(tx *Tx) {
		listed(tx, link(table.Root, "d"), d, dirListed(time.Unix(0, 0)))
		listed(tx, l, f, table.Inode{AttrGen: 1})
		tx.Refer(f)
	})
	s := tr.Lock().Snapshot()
	tr.Unlock()
	overtaken := func() bool {
		defer tr.Unlock()
		return s.IsOvertaken(tr.Lock())
	}
	forget := func() bool {
		_, dropped, err := Unloading{Tree: tr, EmptyDirs: true}.Run(t.Context(), 0)
		assert.OK(t, err)
		return dropped > 0
	}
	tr.do(t, func(tx *Tx) { tx.AttrChanged(f) })
	assert.Equal(t, s.Inode(f).AttrGen, 1, "attributes in the snapshot")
	assert.False(t, s.Differs(s.Record(l)) || s.IsDirty(l) || s.IsHeld(f), "the snapshot knows what came later")
	assert.False(t, overtaken(), "what we did here changed the remote")
	tr.do(t, func(tx *Tx) { tx.SetRemote(l, &table.Remote{Ino: f, Kind: providers.KindFile, AttrGen: 2}) })
	assert.True(t, overtaken(), "nothing is known to have changed at the remote")
	assert.True(t, s.Record(l).Remote.AttrGen == 1, "the remote side in the snapshot changed")
	tr.Lock().DropReferences(f, 1)
	tr.Unlock()
	tr.held.guarded.options.Pins = unpinned{}
	assert.False(t, forget(), "names went that the snapshot has")
	assert.OK(t, s.Close(tr))
	assert.True(t, forget(), "names are kept for no snapshot")
}
