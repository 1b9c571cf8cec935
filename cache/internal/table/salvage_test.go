package table

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestSalvage: all inodes are found in the files of a table whose manifest is
// damaged, in their newest state; where a log has a hole, all that it does not
// speak of are.
func TestSalvage(t *testing.T) {
	dir := made(t, 600)
	tables, _ := filepath.Glob(filepath.Join(dir, "db/*.sst"))
	assert.Must(t, len(tables) != 0, "all is in the log")
	want := map[Ino]*Inode{}
	tab := open(t, dir, Options{})
	last := tab.Alloc()
	for ino := Root; ino < last; ino++ {
		if n := tab.Inode(ino); n != nil {
			want[ino] = n
		}
	}
	assert.OK(t, tab.Close())
	rewrite(t, dir, "db/MANIFEST-*", func(b []byte) []byte { return b[:10] })
	all := func(Ino) bool { return true }
	got := Salvage(dir, all)
	assert.True(t, len(want) >= 40 && reflect.DeepEqual(got, want), "found", len(got), "inodes of", len(want), "or others")
	for ino, n := range Salvage(dir, func(Ino) bool { return false }) {
		assert.True(t, n.IsDir(), "inode", ino, "was not asked for")
	}

	dir = t.TempDir()
	for _, value := range [][]byte{[]byte("first"), []byte("last"), nil} { // sessions
		tab := open(t, dir, Options{})
		tab.Set("key", value)
		tab.Set("key/of another", []byte("other"))
		assert.OK(t, tab.Commit())
		assert.OK(t, tab.Close())
		assert.Equal(t, string(Remains(dir).Get("key")), string(value), "of others")
	}

	dir, newest, _ := killed(t)
	whole := Salvage(dir, all)
	rewrite(t, dir, newest, func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	})
	holed := Salvage(dir, all)
	other := 0
	for ino, n := range whole {
		if !reflect.DeepEqual(holed[ino], n) {
			other++
		}
	}
	assert.AtMost(t, other, 3, "inodes that are missing or others because of one bit")
	assert.AtMost(t, len(holed), len(whole)+3, "inodes found")
}
