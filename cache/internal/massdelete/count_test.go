package massdelete

import (
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func TestLately(t *testing.T) {
	tr, again := newTree(t)
	for _, n := range []int{0, 3, 3, 12, 0} {
		update(t, tr, func(tx *tree.Tx) { SetLately(tx, n) })
		tr = again()
		assert.Equal(t, Lately(tr.Lock()), n, "lately, in the next run")
		tr.Unlock()
	}
}

// Of the names that are due those count that are gone, if they were not confirmed and what
// they stood for has no other name; in the root all do, as soon as one is new.
func TestCountDue(t *testing.T) {
	tr, _ := newTree(t)
	const dir, moved, gone = 10, 11, 12
	var seqs []uint64
	update(t, tr, func(tx *tree.Tx) {
		for _, ino := range []table.Ino{table.Root, dir, moved, gone} {
			tx.Put(ino, &table.Inode{})
		}
		for _, c := range []struct {
			dir           table.Ino
			name          string
			local, remote table.Ino
		}{
			{dir, "removed", 0, gone},
			{table.Root, "moved", 0, moved},
			{table.Root, "removed", 0, gone},
			{table.Root, "made", moved, 0},
			{dir, "made", gone, 0},
			{table.Root, "changed", moved, gone},
			{dir, "late", 0, dir},
		} {
			l, rec := table.Link{Dir: c.dir, Name: c.name}, table.Name{Ino: c.local}
			if c.remote != 0 {
				rec.Remote = &table.Remote{Ino: c.remote, Kind: providers.KindFile}
			}
			tx.SetName(l, rec)
			tx.Mark(l)
			seqs = append(seqs, tx.Record(l).Seq)
		}
		tx.SetLocal(table.Link{Dir: dir, Name: "made"}, 0, false, false) // gone has no name any more
	})
	v := tr.Lock()
	defer tr.Unlock()
	for _, c := range []struct {
		due, cleared      uint64
		all, root, inRoot int
	}{
		{seqs[0], 0, 1, 0, 0},
		{seqs[1], 0, 1, 1, 0}, // what was moved is not deleted
		{seqs[2], 0, 2, 2, 0},
		{seqs[5], 0, 2, 2, 1},
		{seqs[5], seqs[0], 1, 2, 1},
		{seqs[5], seqs[1], 1, 2, 1},
		{seqs[5], seqs[2], 0, 0, 1}, // all was confirmed
		{seqs[6], seqs[2], 1, 0, 1},
	} {
		all, root, made := CountDue(v, c.due, c.cleared)
		if all != c.all || root != c.root || made != c.inRoot {
			t.Errorf("up to %d, confirmed to %d: %d, %d in the root, %d made there; want %d, %d, %d", c.due, c.cleared, all, root, made, c.all, c.root, c.inRoot)
		}
	}
}
