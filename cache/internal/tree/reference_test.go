package tree

import (
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// pinned are inodes that somebody uses.
type pinned map[table.Ino]bool

func (p pinned) Pinned(_ *View, ino table.Ino) bool { return p[ino] }

// An inode without a name is forsaken once the kernel has forgotten each reference that it
// was given, and nobody else uses it; the root and what has a name never are.
func TestReferences(t *testing.T) {
	const nameless, named = 10, 11
	pins := pinned{}
	tr := newTree(t, Options{Pins: pins})
	tr.do(t, func(tx *Tx) {
		tx.Put(nameless, &table.Inode{})
		tx.Put(named, &table.Inode{})
		name(tx, link(table.Root, "f"), named, 0)
	})
	v := tr.Lock()
	defer tr.Unlock()
	forsaken := func(want bool) {
		t.Helper()
		assert.Equal(t, v.IsForsaken(nameless), want, "forsaken")
		assert.False(t, v.IsForsaken(named) || v.IsForsaken(table.Root) || v.IsForsaken(99), "another is forsaken")
	}
	forsaken(true)
	for range 3 {
		v.Refer(nameless)
	}
	v.Refer(named)
	forsaken(false)
	assert.Equal(t, v.References(nameless), 3)
	assert.Equal(t, v.ReferenceCount(), 2)
	assert.False(t, v.DropReferences(nameless, 2), "the last of three was dropped with the second")
	forsaken(false)
	pins[nameless] = true
	assert.True(t, v.DropReferences(nameless, 1), "the last one is still there")
	assert.True(t, v.IsHeld(nameless), "a pin does not hold it")
	forsaken(false)
	delete(pins, nameless)
	forsaken(true)
	assert.True(t, v.DropReferences(nameless, 1), "one is left of none")
}

// What the kernel has of an inode it has until it forgets the inode, and it has no
// attributes of one that it does not know.
func TestWhatTheKernelHas(t *testing.T) {
	v := newTree(t, Options{}).Lock()
	v.OutdateAttributes(10)
	assert.False(t, v.HasOutdatedAttributes(10), "it has attributes of what it does not know")
	v.Refer(10)
	v.Refer(10)
	assert.Equal(t, v.KernelPages(10), 0, "pages")
	v.SetKernelPages(10, 7)
	v.OutdateAttributes(10)
	v.DropReferences(10, 1)
	assert.Equal(t, v.KernelPages(10), 7, "pages")
	assert.True(t, v.HasOutdatedAttributes(10), "its attributes are those of this version")
	v.DropReferences(10, 1)
	assert.Equal(t, v.KernelPages(10), 0, "pages")
	assert.False(t, v.HasOutdatedAttributes(10), "it has attributes of what it forgot")
}

// A name that was taken from an inode which the kernel knows is stale until somebody is
// told so, or the kernel looks it up.
func TestStaleDentries(t *testing.T) {
	const known, unknown = 10, 11
	a, b, c := link(table.Root, "a"), link(table.Root, "b"), link(table.Root, "c")
	v := newTree(t, Options{}).Lock()
	v.Refer(known)
	v.MarkStaleDentry(a, known)
	v.MarkStaleDentry(b, known)
	v.MarkStaleDentry(c, unknown)
	assert.False(t, v.TakeStaleDentries(c), "the kernel knows an inode that it never was given")
	assert.True(t, v.TakeStaleDentries(c, a), "a is not stale")
	assert.False(t, v.TakeStaleDentries(a), "a is stale once more")
	v.ClearStaleDentry(b)
	assert.False(t, v.TakeStaleDentries(b), "b was looked up and is stale")
}

// What is noted of names that nobody uses again does not grow without end.
func TestStaleDentriesAreBounded(t *testing.T) {
	v := newTree(t, Options{}).Lock()
	v.Refer(10)
	for dir := range table.Ino(3 * maxStaleDentries) {
		v.MarkStaleDentry(link(dir, "f"), 10)
	}
	assert.True(t, len(v.guarded.staleDentries) <= maxStaleDentries, "stale dentries:", len(v.guarded.staleDentries))
	assert.True(t, v.TakeStaleDentries(link(3*maxStaleDentries-1, "f")), "the last one is not known")
}
