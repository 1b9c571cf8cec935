package table

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// TestEditIsACopy: nothing that a caller changes in place is seen before
// Commit, or after Abort.
func TestEditIsACopy(t *testing.T) {
	tab := scratch(t)
	ino := tab.Alloc()
	tab.Put(ino, &Inode{Xattrs: map[string][]byte{"a": []byte("x")}, Metadata: map[string]string{"k": "v"}, LostName: &Link{1, "c"}})
	tab.SetName(Root, "f", Name{Ino: ino})
	commit(t, tab)
	seen := tab.Inode(ino)
	n := tab.Edit(ino)
	n.Xattrs["a"][0], n.Xattrs["b"], n.Metadata["k"], n.LostName.Name, n.Size = 'y', []byte("z"), "w", "d", 9
	tab.SetName(Root, "g", Name{Ino: ino})
	assert.Equal(t, fmt.Sprint(seen.Links, seen.Xattrs, seen.Metadata, seen.LostName, seen.Size), "[{1 f}] map[a:[120]] map[k:v] &{1 c} 0", "what was seen before changed")
	assert.True(t, tab.Edit(ino) == n && tab.Inode(ino) == n, "the same edit is not seen again")
	tab.Abort()
	assert.True(t, tab.Inode(ino).Size == 0 && len(tab.Inode(ino).Links) == 1, "after Abort", tab.Inode(ino))
}

// TestMisuse: a broken rule panics in tests, and elsewhere fails the commit,
// and only that one.
func TestMisuse(t *testing.T) {
	tests := []struct {
		name  string
		wrong func(*Table)
		close bool // only looked for in tests
	}{
		{"drop of a name's", func(t *Table) { t.Drop(2) }, false},
		{"drop of a base's", func(t *Table) { t.SetName(Root, "f", Name{Remote: &Remote{Ino: 2}}); t.Drop(2) }, false},
		{"drop of a directory with entries", func(t *Table) { t.Drop(Root) }, false},
		{"drop of a directory with a base", func(t *Table) {
			t.SetName(Root, "f", Name{Remote: &Remote{}})
			t.Drop(Root)
		}, true},
		{"drop of nothing", func(t *Table) { t.Drop(77) }, false},
		{"put with names", func(t *Table) { t.Put(t.Alloc(), &Inode{Links: []Link{{1, "a"}}}) }, false},
		{"put of what is there", func(t *Table) { t.Put(2, &Inode{}) }, true},
		{"put of zero", func(t *Table) { t.Put(0, &Inode{}) }, false},
		{"name of nothing", func(t *Table) { t.SetName(Root, "g", Name{Ino: 77}) }, false},
		{"base of nothing", func(t *Table) { t.SetName(Root, "g", Name{Remote: &Remote{Ino: 77}}) }, false},
		{"name in nothing", func(t *Table) { t.SetName(77, "g", Name{Ino: 2}) }, false},
		{"base in nothing", func(t *Table) { t.SetName(77, "g", Name{Remote: &Remote{}}) }, true},
		{"no name", func(t *Table) { t.SetName(Root, "", Name{Ino: 2}) }, true},
		{"two with one place", func(t *Table) {
			t.SetName(Root, "g", Name{Seq: 5})
			t.SetName(Root, "h", Name{Seq: 5})
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tab := scratch(t)
			addFile(tab, Root, "f")
			commit(t, tab)
			func() {
				defer func() {
					err, _ := recover().(error)
					assert.Is(t, err, ErrMisuse, "strict")
				}()
				tt.wrong(tab)
			}()
			tab.Abort()
			if tt.close {
				return
			}
			tab.options.Strict = false
			tt.wrong(tab)
			assert.Is(t, tab.Commit(), ErrMisuse, "Commit")
			tab.Abort()
			addFile(tab, Root, "after")
			commit(t, tab)
		})
	}
}

// TestNumbers: numbers are given once, through many blocks, and few are
// wasted.
func TestNumbers(t *testing.T) {
	disk := vfs.NewCrashableMem()
	tab := open(t, "/t", Options{FS: disk})
	ino, seq := Root, uint64(0)
	for i := range 3*numberBlock + 5 {
		ino, seq = ino+1, seq+1
		assert.Must(t, tab.Alloc() == ino, "another number than", ino, "after", i)
		assert.Must(t, tab.NextSeq() == seq, "another place than", seq, "after", i)
	}
	cut := disk.CrashClone(vfs.CrashCloneCfg{}) // nothing but what was synced
	tab.Set("a", []byte("b"))
	commit(t, tab)
	assert.OK(t, tab.Close())
	for _, tt := range []struct {
		name string
		disk vfs.FS
		most uint64
	}{{"closed", disk, ino + 1}, {"power cut", cut, ino + 2*numberBlock}} {
		tab := open(t, "/t", Options{FS: tt.disk})
		number, place := tab.Alloc(), tab.NextSeq()
		assert.True(t, number > ino && number <= tt.most, tt.name, "after", ino, "comes", number)
		assert.True(t, place > seq && place <= tt.most, tt.name, "after place", seq, "comes", place)
		assert.OK(t, tab.Close())
	}
}

// TestResidentIsBounded: few inodes stay, and those that are used.
func TestResidentIsBounded(t *testing.T) {
	var r resident[Ino, *Inode]
	r.init(10)
	hot := &Inode{Size: 1}
	r.put(1, hot)
	for i := Ino(2); i < 1000; i++ {
		r.put(i, &Inode{Size: int64(i)})
		n, _ := r.get(1)
		assert.Must(t, n == hot, "the one in use went with", i)
	}
	n, ok := r.get(999)
	assert.True(t, ok && n.Size == 999, "the last is", n)
	assert.True(t, len(r.at) <= 10 && len(r.slots) <= 10, len(r.at), "and", len(r.slots), "stay")
	r.drop(1)
	_, ok = r.get(1)
	assert.False(t, ok, "what was dropped stays")
	r.put(5000, hot)
	n, _ = r.get(5000)
	assert.Equal(t, n, hot, "what got the room")
}

// TestLargeCommit: a commit larger than Pebble's memory is one step, too.
func TestLargeCommit(t *testing.T) {
	disk := vfs.NewCrashableMem()
	tab := open(t, "/t", Options{FS: disk, memTable: 64 << 10})
	directory(tab, 0, "")
	commit(t, tab)
	for i := range 3000 {
		addFile(tab, Root, fmt.Sprint("f", i))
	}
	commit(t, tab)
	assert.Equal(t, tab.Inode(Root).Entries, 3000, "entries")
	addFile(tab, Root, "last")
	commit(t, tab)
	disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
	assert.OK(t, tab.Close())
	tab = open(t, "/t", Options{FS: disk})
	err := tab.Check()
	assert.True(t, err == nil && tab.Inode(Root).Entries == 3001, tab.Inode(Root).Entries, "entries after a kill", err)
	assert.OK(t, tab.Close())
}

// TestLargeCommits: commits that are large for the small memory at the
// beginning do not wait for files that nobody writes.
func TestLargeCommits(t *testing.T) {
	tab := scratch(t)
	for i := range tier.Pick(4, 12) {
		dir := directory(tab, Root, fmt.Sprint(i))
		for j := range 3000 {
			addFile(tab, dir, fmt.Sprint("a-file-with-a-name-", j))
		}
		commit(t, tab)
	}
}

func TestErrorsOfTheSystem(t *testing.T) {
	f := newFaults(vfs.NewMem())
	f.fail(syscall.EACCES, func(op, _ string) bool { return op == "create" })
	_, err := Open("/t", Options{FS: f.vfs})
	assert.True(t, errors.Is(err, syscall.EACCES) && !errors.Is(err, ErrDamaged), "got", err)
}
