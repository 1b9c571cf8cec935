package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestVisitMayChange: each iteration goes over the table as it is, whatever
// visit does to it.
func TestVisitMayChange(t *testing.T) {
	tab := scratch(t)
	for i := range 1000 {
		addFile(tab, Root, fmt.Sprintf("f%03d", i))
	}
	commit(t, tab)
	var seen []string
	tab.Names(Root, "f099", func(name string, n Name) bool {
		seen = append(seen, name)
		tab.SetName(Root, name, Name{})
		tab.Drop(n.Ino)
		var i int
		fmt.Sscanf(name, "f%d", &i)
		if i%10 == 0 { // the next is gone, and one is new between
			next := fmt.Sprintf("f%03d", i+1)
			old, _ := tab.Name(Root, next)
			tab.SetName(Root, next, Name{})
			tab.Drop(old.Ino)
			addFile(tab, Root, next+"new")
		}
		if i%3 == 0 {
			commit(t, tab)
		}
		return true
	})
	assert.Equal(t, len(seen), 900, "seen")
	assert.Slice(t, seen[:3], []string{"f100", "f101new", "f102"}, "seen first")
	assert.True(t, slices.IsSorted(seen), "seen in another order", seen)
	assert.Equal(t, tab.Inode(Root).Entries, 100, "are left")
}

// TestDirtyOrder: places come in order, also when the first ones go and when
// one comes before them.
func TestDirtyOrder(t *testing.T) {
	tab := scratch(t)
	dirty := func(after uint64) (seqs []uint64) {
		tab.Dirty(after, func(seq uint64, _ Link) bool {
			seqs = append(seqs, seq)
			return true
		})
		return seqs
	}
	set := func(name string, seq uint64) { tab.SetName(Root, name, Name{Seq: seq, Remote: &Remote{}}) }
	for i := range uint64(9) {
		set(fmt.Sprint(i), 10+i)
	}
	commit(t, tab)
	assert.Slice(t, dirty(11), []uint64{12, 13, 14, 15, 16, 17, 18}, "behind 11")
	dirty(0)
	set("0", 0)
	set("1", 0)
	got := dirty(0)
	assert.True(t, len(got) == 7 && got[0] == 12, "without the first", got)
	tab.Abort()
	got = dirty(0)
	assert.True(t, len(got) == 9 && got[0] == 10, "with the first again", got)
	set("0", 0)
	commit(t, tab)
	dirty(0)
	set("8", 3)
	got = dirty(0)
	assert.True(t, len(got) == 8 && got[0] == 3, "with one before", got)
	stopped := 0
	tab.Dirty(0, func(uint64, Link) bool {
		stopped++
		return false
	})
	assert.True(t, stopped == 1 && tab.DirtyCount() == 8 && dirty(^uint64(0)) == nil, "stopped after", stopped, "count", tab.DirtyCount())
	for i := range 9 {
		set(fmt.Sprint(i), 0)
	}
	assert.Equal(t, tab.DirtyCount(), 0, "in the end")
	assert.Slice(t, dirty(0), nil, "in the end")
}

// TestReaddirUnderChange: an entry that is there throughout comes once, and a
// cookie is never given twice.
func TestReaddirUnderChange(t *testing.T) {
	tab := scratch(t)
	for i := range 600 {
		addFile(tab, Root, fmt.Sprint("stays", i))
		addFile(tab, Root, fmt.Sprint("goes", i))
	}
	commit(t, tab)
	seen, cookies := map[string]int{}, map[uint64]string{}
	i := 0
	for e, ok := tab.Next(Root, 0); ok; e, ok = tab.Next(Root, e.Cookie) {
		seen[e.Name]++
		other, twice := cookies[e.Cookie]
		assert.Must(t, !twice && e.Cookie >= FirstCookie, "cookie", e.Cookie, "is that of", other, "and of", e.Name)
		cookies[e.Cookie] = e.Name
		n, _ := tab.Name(Root, e.Name)
		assert.Must(t, n.Ino == e.Ino && n.Cookie == e.Cookie, "there came", e, "and the name is", n)
		if name := fmt.Sprint("goes", i); i < 600 && i%2 == 0 {
			n, _ := tab.Name(Root, name)
			tab.SetName(Root, name, Name{})
			tab.Drop(n.Ino)
			if i < 300 {
				addFile(tab, Root, name) // with a new place
			}
			commit(t, tab)
		}
		i++
	}
	for i := range 600 {
		assert.Equal(t, seen[fmt.Sprint("stays", i)], 1, "stays", i, "times it came")
	}
	_, ok := tab.Next(77, 0)
	assert.False(t, ok, "a directory that is not there has an entry")
}

// TestReaddirForgets: what was read ahead does not outlive Abort, nor what was
// kept in memory Drop.
func TestReaddirForgets(t *testing.T) {
	tab := scratch(t)
	first := addFile(tab, Root, "a")
	commit(t, tab)
	second := addFile(tab, Root, "b")
	e, _ := tab.Next(Root, 0)
	tab.Abort()
	next, ok := tab.Next(Root, e.Cookie)
	assert.True(t, !ok && tab.Inode(second) == nil, "after Abort there is", next)
	b := addFile(tab, Root, "b")
	addFile(tab, Root, "c")
	commit(t, tab)
	tab.SetName(Root, "b", Name{})
	tab.Drop(b)
	tab.Next(Root, 0)
	tab.Abort()
	next, ok = tab.Next(Root, e.Cookie)
	assert.True(t, next.Name == "b" && ok, "after Abort of a removal there is", next)
	assert.Must(t, tab.Inode(first) != nil, "no inode")
	tab.SetName(Root, "a", Name{})
	tab.Drop(first)
	commit(t, tab)
	assert.True(t, tab.Inode(first) == nil, "after Drop there is", tab.Inode(first))
}

func TestScan(t *testing.T) {
	tab := scratch(t)
	for _, k := range []string{"", "a", "a!", "a/1", "a/2", "a/3", "b", "\xff", "\xff\xff"} {
		tab.Set(k, []byte(k))
	}
	for _, tt := range []struct{ prefix, after, want string }{
		{"", "", ",a,a!,a/1,a/2,a/3,b,\xff,\xff\xff"},
		{"a/", "", "a/1,a/2,a/3"},
		{"a/", "a/1", "a/2,a/3"},
		{"a/", "a", "a/1,a/2,a/3"},
		{"a/", "a/3", ""},
		{"\xff", "", "\xff,\xff\xff"},
		{"x", "", ""},
	} {
		var got []string
		tab.Scan(tt.prefix, tt.after, func(k string, v []byte) bool {
			assert.Equal(t, k, string(v), "has", v)
			got = append(got, k)
			return true
		})
		assert.Equal(t, strings.Join(got, ","), tt.want, tt.prefix, "behind", tt.after, got)
	}
	assert.True(t, tab.Get("c") == nil, "a record that is not there")
	assert.True(t, tab.Get("") != nil, "a record without a name")
}
