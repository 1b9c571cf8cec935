package history

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// in has do work on a tree that has nothing.
func in(t *testing.T, do func(tx *tree.Tx)) {
	t.Helper()
	tab := assert.Of(table.Open("/history", table.Options{FS: vfs.NewMem()})).OK(t)
	defer tab.Close()
	err := tree.New(tab, tree.Options{}).Update(func(tx *tree.Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		do(tx)
		return nil
	}, nil)
	assert.OK(t, err)
}

func appended(tx *tree.Tx, r Record) uint64 { return Append(tx, HeadOf(tx, r.Link()), &r) }

// The records of a name follow each other, whatever happens to other names.
func TestAppend(t *testing.T) {
	in(t, func(tx *tree.Tx) {
		f, g := table.Link{Dir: 7, Name: "f"}, table.Link{Dir: 7, Name: "f/g"}
		assert.Equal(t, HeadOf(tx, f), Head{})
		var ids []uint64
		for i := range 3 {
			ids = append(ids, appended(tx, Record{Change: Written, Dir: f.Dir, Name: f.Name, Size: int64(i)}))
			appended(tx, Record{Change: Made, Dir: g.Dir, Name: g.Name})
		}
		assert.Equal(t, HeadOf(tx, f), Head{ids[2], 3})
		id := HeadOf(tx, f).ID
		for i := 2; i >= 0; i-- {
			r := Get(tx, id)
			assert.Equal(t, fmt.Sprint(r.Number, r.Size), fmt.Sprint(i+1, i), "record", i)
			id = r.Back
		}
		assert.Equal(t, id, 0, "before the first")
		assert.True(t, Get(tx, id) == nil, "there is a record 0")
	})
}

// What later versions of this program must find again.
func TestKeys(t *testing.T) {
	for got, want := range map[string]string{
		Key(0x1f): "hv/000000000000001f", KeptKey(1): "hk/0000000000000001", QueueKey(2): "hq/0000000000000002",
		HeadKey(table.Link{Dir: 3, Name: "a/b"}): "hn/0000000000000003/a/b", StoreID(4): "0000000000000004",
	} {
		assert.Equal(t, got, want)
	}
	assert.Equal(t, IDOf(Key(1<<60+5)), 1<<60+5)
	assert.Equal(t, IDOf("hv/x"), 0)
	in(t, func(tx *tree.Tx) {
		tx.Set(Key(9), []byte(`{"k":"written","n":1,"i":5,"d":1,"m":"f","p":"f","t":1,"o":33188,"s":3,"kp":true,"actor":"a"}`))
		r := Get(tx, 9)
		assert.Equal(t, fmt.Sprint(r.Change, r.Ino, r.Link(), r.Size, r.Kept, r.Actor.Name), fmt.Sprint("written", 5, table.Link{Dir: 1, Name: "f"}, 3, true, "a"))
		tx.Set(Key(10), []byte("{"))
		assert.True(t, Get(tx, 10) == nil, "half a record was read")
	})
}

// The content of an inode is found by its name, through what happened to the name since.
func TestContentOf(t *testing.T) {
	const ino, other = 5, 6
	f, g := table.Link{Dir: 7, Name: "f"}, table.Link{Dir: 7, Name: "g"}
	written := func(tx *tree.Tx, l table.Link, ino table.Ino) uint64 {
		return appended(tx, Record{Change: Written, Ino: ino, Dir: l.Dir, Name: l.Name})
	}
	for name, does := range map[string]func(tx *tree.Tx) (want uint64){
		"nothing": func(*tree.Tx) uint64 { return 0 },
		"written": func(tx *tree.Tx) uint64 { return written(tx, f, ino) },
		"another's": func(tx *tree.Tx) uint64 {
			written(tx, f, other)
			return 0
		},
		"moved": func(tx *tree.Tx) uint64 {
			of := written(tx, g, ino)
			appended(tx, Record{Change: Moved, Ino: ino, Dir: f.Dir, Name: f.Name, Of: of})
			return of
		},
		"replaced, in what another wrote": func(tx *tree.Tx) uint64 {
			of := written(tx, f, ino)
			appended(tx, Record{Change: Ended, Ino: other, Dir: f.Dir, Name: f.Name, Stays: true})
			return of
		},
		"ended": func(tx *tree.Tx) uint64 {
			written(tx, f, ino)
			appended(tx, Record{Change: Ended, Ino: ino, Dir: f.Dir, Name: f.Name})
			return 0
		},
		"given up": func(tx *tree.Tx) uint64 {
			appended(tx, Record{Change: Moved, Ino: ino, Dir: f.Dir, Name: f.Name, Of: 99})
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(tx *tree.Tx) {
				want := does(tx)
				id, r := ContentOf(tx, ino, f)
				assert.Equal(t, id, want)
				assert.Equal(t, r != nil, want != 0, "there is a record")
			})
		})
	}
}

// Content that was kept for another record is under that one's id.
func TestKeptID(t *testing.T) {
	assert.Equal(t, (&Record{}).KeptID(3), 3)
	assert.Equal(t, (&Record{Copy: 2}).KeptID(3), 2)
}
