package table

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestCheckFinds: each breach is found.
func TestCheckFinds(t *testing.T) {
	edit := func(ino Ino, change func(*Inode)) func(*Table) {
		return func(t *Table) { change(t.Edit(ino)) }
	}
	name := func(n Name) func(*Table) {
		return func(t *Table) { t.write(nameKey(Root, "x"), n.encode(nil)) }
	}
	tests := []struct {
		name   string
		breach func(*Table)
	}{
		{"a link too many", edit(2, func(n *Inode) { n.Links = append(n.Links, Link{Root, "y"}) })},
		{"a link missing", edit(2, func(n *Inode) { n.Links = nil })},
		{"a home too many", edit(2, func(n *Inode) { n.RemoteLinks = append(n.RemoteLinks, Link{Root, "y"}) })},
		{"a home missing", edit(2, func(n *Inode) { n.RemoteLinks = nil })},
		{"entries", edit(Root, func(n *Inode) { n.Entries++ })},
		{"subdirs", edit(Root, func(n *Inode) { n.Subdirs++ })},
		{"cookies", edit(Root, func(n *Inode) { n.Cookies = FirstCookie })},
		{"entries of an empty one", edit(3, func(n *Inode) { n.Entries++ })},
		{"two names of a directory", edit(3, func(n *Inode) { n.Links = append(n.Links, n.Links...) })},
		{"an inode missing", func(t *Table) { t.edits[2] = nil }},
		{"an inode not given", func(t *Table) { t.Put(1<<40, &Inode{}) }},
		{"an entry missing", func(t *Table) { t.delete(cookieKey(Root, FirstCookie)) }},
		{"an entry too many", func(t *Table) { t.write(cookieKey(Root, 99), encodeEntry(2, "f")) }},
		{"an entry of another", func(t *Table) { t.write(cookieKey(Root, FirstCookie), encodeEntry(3, "f")) }},
		{"an entry with another name", func(t *Table) { t.write(cookieKey(Root, FirstCookie), encodeEntry(2, "g")) }},
		{"a place missing", func(t *Table) { t.delete(dirtyKey(1)) }},
		{"a place too many", func(t *Table) { t.write(dirtyKey(9), encodeLink(Link{Root, "f"})) }},
		{"a place of another", func(t *Table) { t.write(dirtyKey(1), encodeLink(Link{Root, "d"})) }},
		{"a count", func(t *Table) { t.dirty.now.count++ }},
		{"a beginning", func(t *Table) { t.dirty.now.first = 8 }},
		{"a name of nothing", name(Name{Ino: 77, Cookie: 4})},
		{"a base of nothing", name(Name{Remote: &Remote{Ino: 77}})},
		{"a name that says nothing", name(Name{Local: true})},
		{"a place that is empty", name(Name{Seq: 50})},
		{"a name in no directory", func(t *Table) { n := Name{Remote: &Remote{}}; t.write(nameKey(2, "x"), n.encode(nil)) }},
		{"a name in nothing", func(t *Table) { n := Name{Remote: &Remote{}}; t.write(nameKey(77, "x"), n.encode(nil)) }},
		{"no name", func(t *Table) { n := Name{Remote: &Remote{}}; t.write(nameKey(Root, ""), n.encode(nil)) }},
		{"a name that is none", func(t *Table) { t.write(nameKey(Root, "x"), []byte{9}) }},
		{"an inode that is none", func(t *Table) { t.write(inodeKey(50), []byte{9}) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tab := open(t, "/t", Options{FS: vfs.NewMem()})
			directory(tab, 0, "")
			ino := addFile(tab, Root, "f")
			directory(tab, Root, "d")
			tab.SetName(Root, "f", Name{Ino: ino, Seq: tab.NextSeq(), Remote: &Remote{Ino: ino}})
			commit(t, tab)
			assert.OK(t, tab.Check())
			tt.breach(tab)
			assert.True(t, tab.Check() != nil, "not found")
			assert.Is(t, tab.Close(), nil)
		})
	}
}
