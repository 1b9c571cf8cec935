package tree

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// listed puts an inode under a name as a listing of the remote does.
func listed(tx *Tx, l table.Link, ino table.Ino, n table.Inode) {
	tx.Put(ino, &n)
	tx.SetName(l, table.Name{Ino: ino, Remote: &table.Remote{Ino: ino, Kind: providers.KindFile, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen}})
}

func dirListed(at time.Time) table.Inode {
	return table.Inode{Mode: syscall.S_IFDIR, Loaded: true, Listed: at.UnixNano()}
}

// Directories d and d/e have files that nobody uses; they are forgotten from the leaves up
// until few enough are known, and those with content only when that is not enough.
func TestUnload(t *testing.T) {
	const d, e, files = 10, 11, 2*unloadStep + 10
	long, now := time.Unix(0, 0), time.Unix(0, 0)
	tr := newTree(t, Options{Now: func() time.Time { return now }})
	tr.do(t, func(tx *Tx) {
		listed(tx, link(table.Root, "d"), d, dirListed(long))
		listed(tx, link(d, "e"), e, dirListed(long))
		for i := range table.Ino(files) {
			listed(tx, link(e, fmt.Sprint("f", i)), 100+i, table.Inode{})
		}
		listed(tx, link(d, "content"), 20, table.Inode{State: table.Whole})
	})
	all := files + 3
	left := all
	var freed []table.Ino
	run := func(limit, want int) {
		t.Helper()
		known, dropped, err := Unloading{Tree: tr, EmptyDirs: true, Freed: func(ino table.Ino) {
			tr.Lock() // it is free
			tr.Unlock()
			freed = append(freed, ino)
		}}.Run(t.Context(), limit)
		assert.OK(t, err)
		assert.Equal(t, known, want, "known, with a limit of", limit)
		assert.Equal(t, dropped, left-known, "dropped")
		left = known
	}
	run(all, all)
	run(1, all) // it was listed just now
	now = long.Add(unloadAge)
	run(all-1, 3)
	assert.Slice(t, freed, nil, "content went")
	run(1, 1)
	assert.Slice(t, freed, []table.Ino{20}, "content that went")
	v := tr.Lock()
	defer tr.Unlock()
	assert.True(t, v.Inode(d) != nil && !v.Inode(d).Loaded, "d is believed to be known")
	assert.True(t, v.Inode(20) == nil && v.Inode(100) == nil, "files are there still")
}

// Whatever cannot be had again by a listing keeps its name, and with it all that is beside it.
func TestUnloadKeeps(t *testing.T) {
	const dir, file, other = 10, 11, 12
	l := link(dir, "f")
	record := func(change func(*table.Name)) func(*Tx) {
		return func(tx *Tx) {
			rec := tx.Record(l)
			change(&rec)
			tx.SetName(l, rec)
		}
	}
	inode := func(ino table.Ino, change func(*table.Inode)) func(*Tx) {
		return func(tx *Tx) { change(tx.Edit(ino)) }
	}
	pins := pinned{}
	for what, keep := range map[string]func(*Tx){
		"nothing":               func(*Tx) {},
		"dirty":                 func(tx *Tx) { tx.ContentChanged(file, 1, table.Time{}) },
		"other attributes":      func(tx *Tx) { tx.Edit(file).AttrGen++ },
		"local":                 record(func(rec *table.Name) { rec.Local = true }),
		"an attempt":            record(func(rec *table.Name) { rec.Attempt = &table.Attempt{} }),
		"held back":             record(func(rec *table.Name) { rec.Held = &table.Held{} }),
		"not at the remote":     record(func(rec *table.Name) { rec.Remote = nil }),
		"another at the remote": record(func(rec *table.Name) { rec.Remote.Ino = other }),
		"removed":               record(func(rec *table.Name) { rec.Ino = 0 }),
		"another name":          func(tx *Tx) { name(tx, link(table.Root, "g"), file, 0) },
		"one at the remote":     func(tx *Tx) { name(tx, link(table.Root, "g"), 0, file) },
		"a lost name":           inode(file, func(n *table.Inode) { n.LostName = &table.Link{Dir: dir, Name: "x"} }),
		"writing":               inode(file, func(n *table.Inode) { n.Writing = true }),
		"suspect":               inode(file, func(n *table.Inode) { n.Suspect = true }),
		"of its own":            inode(file, func(n *table.Inode) { n.Target = "own" }),
		"known to the kernel":   func(tx *Tx) { tx.Refer(file) },
		"in use":                func(*Tx) { pins[file] = true },
		"used as a directory":   func(tx *Tx) { tx.Refer(dir) },
		"looked at":             func(tx *Tx) { tx.Observe() },
		"not listed":            inode(dir, func(n *table.Inode) { n.Loaded = false }),
		"taking over":           inode(dir, func(n *table.Inode) { n.From = "<12" }),
	} {
		t.Run(what, func(t *testing.T) {
			clear(pins)
			tr := newTree(t, Options{Pins: pins})
			tr.do(t, func(tx *Tx) {
				listed(tx, link(table.Root, "d"), dir, dirListed(time.Unix(0, 0)))
				listed(tx, l, file, table.Inode{})
				tx.Put(other, &table.Inode{})
				keep(tx)
			})
			_, _, err := Unloading{Tree: tr, EmptyDirs: true, HasOwn: func(n *table.Inode) bool { return n.Target == "own" }}.Run(t.Context(), 0)
			assert.OK(t, err)
			v := tr.Lock()
			defer tr.Unlock()
			assert.Equal(t, v.Inode(file) == nil, what == "nothing", "it was forgotten")
		})
	}
}

// A directory without names is known only locally where the remote keeps none.
func TestUnloadOfEmptyDirectories(t *testing.T) {
	for _, kept := range []bool{false, true} {
		tr := newTree(t, Options{})
		tr.do(t, func(tx *Tx) {
			listed(tx, link(table.Root, "d"), 10, dirListed(time.Unix(0, 0)))
			listed(tx, link(10, "e"), 11, dirListed(time.Unix(0, 0)))
		})
		known, _, err := Unloading{Tree: tr, EmptyDirs: kept}.Run(t.Context(), 0)
		assert.OK(t, err)
		want := 2
		if kept {
			want = 1 // that in the root, which is always known
		}
		assert.Equal(t, known, want, "known, where the remote keeps empty directories:", kept)
	}
}

// What goes wrong ends it, and is told; what was forgotten before does count.
func TestUnloadFails(t *testing.T) {
	tr, broken, left := newTree(t, Options{}), errors.New("broken"), 3
	tr.do(t, func(tx *Tx) {
		listed(tx, link(table.Root, "d"), 10, dirListed(time.Unix(0, 0)))
		for i := range table.Ino(2 * unloadStep) {
			listed(tx, link(10, fmt.Sprint("f", i)), 100+i, table.Inode{})
		}
	})
	known, _, err := Unloading{Tree: tr, EmptyDirs: true, Update: func(do func(*Tx) error) error {
		if left--; left == 0 {
			return broken
		}
		return tr.Update(do, nil)
	}}.Run(t.Context(), 0)
	assert.Is(t, err, broken)
	assert.Equal(t, known, 1+unloadStep)
	v := tr.Lock()
	defer tr.Unlock()
	assert.Equal(t, len(slices.Collect(func(yield func(string) bool) {
		v.Names(10, "", func(name string, _ table.Name) bool { return yield(name) })
	})), unloadStep, "names")
}
