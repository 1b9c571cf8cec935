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
	if len(seen) != 900 || seen[0] != "f100" || seen[1] != "f101new" || seen[2] != "f102" || !slices.IsSorted(seen) {
		t.Errorf("%d seen: %.100q", len(seen), seen)
	}
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
	if got := dirty(0); len(got) != 7 || got[0] != 12 {
		t.Errorf("without the first: %v", got)
	}
	tab.Abort()
	if got := dirty(0); len(got) != 9 || got[0] != 10 {
		t.Errorf("with the first again: %v", got)
	}
	set("0", 0)
	commit(t, tab)
	dirty(0)
	set("8", 3)
	if got := dirty(0); len(got) != 8 || got[0] != 3 {
		t.Errorf("with one before: %v", got)
	}
	stopped := 0
	tab.Dirty(0, func(uint64, Link) bool {
		stopped++
		return false
	})
	if stopped != 1 || tab.DirtyCount() != 8 || dirty(^uint64(0)) != nil {
		t.Errorf("stopped after %d, count %d", stopped, tab.DirtyCount())
	}
	for i := range 9 {
		set(fmt.Sprint(i), 0)
	}
	if tab.DirtyCount() != 0 || dirty(0) != nil {
		t.Errorf("in the end %d: %v", tab.DirtyCount(), dirty(0))
	}
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
		if other, twice := cookies[e.Cookie]; twice || e.Cookie < FirstCookie {
			t.Fatalf("cookie %d is %q's and %q's", e.Cookie, other, e.Name)
		}
		cookies[e.Cookie] = e.Name
		if n, _ := tab.Name(Root, e.Name); n.Ino != e.Ino || n.Cookie != e.Cookie {
			t.Fatalf("there came %+v, and the name is %+v", e, n)
		}
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
	if _, ok := tab.Next(77, 0); ok {
		t.Error("a directory that is not there has an entry")
	}
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
	if next, ok := tab.Next(Root, e.Cookie); ok || tab.Inode(second) != nil {
		t.Errorf("after Abort there is %+v", next)
	}
	b := addFile(tab, Root, "b")
	addFile(tab, Root, "c")
	commit(t, tab)
	tab.SetName(Root, "b", Name{})
	tab.Drop(b)
	tab.Next(Root, 0)
	tab.Abort()
	if next, ok := tab.Next(Root, e.Cookie); next.Name != "b" || !ok {
		t.Errorf("after Abort of a removal there is %+v", next)
	}
	if tab.Inode(first) == nil {
		t.Fatal("no inode")
	}
	tab.SetName(Root, "a", Name{})
	tab.Drop(first)
	commit(t, tab)
	if n := tab.Inode(first); n != nil {
		t.Errorf("after Drop there is %+v", n)
	}
}

// TestReplaceKeepsCookie: a name that goes over to another inode keeps its
// place.
func TestReplaceKeepsCookie(t *testing.T) {
	tab := scratch(t)
	addFile(tab, Root, "a")
	addFile(tab, Root, "b")
	before, _ := tab.Name(Root, "a")
	addFile(tab, Root, "a")
	after, _ := tab.Name(Root, "a")
	if after.Ino == before.Ino || after.Cookie != before.Cookie {
		t.Errorf("from %+v to %+v", before, after)
	}
	tab.SetName(Root, "a", Name{Remote: &Remote{}})
	addFile(tab, Root, "a")
	if again, _ := tab.Name(Root, "a"); again.Cookie <= after.Cookie || again.Remote == nil {
		t.Errorf("it came back as %+v", again)
	}
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
	if tab.Get("c") != nil || tab.Get("") == nil {
		t.Errorf("Get: %v, %v", tab.Get("c"), tab.Get(""))
	}
}
