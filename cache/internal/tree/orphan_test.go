package tree

import (
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// keeper is an observer that keeps some inodes, and notes whose content was let go.
type keeper struct {
	unobserved
	keeps bool
	freed []table.Ino
}

func (k *keeper) Nameless(table.Ino, *table.Inode) bool { return k.keeps }
func (k *keeper) Freed(ino table.Ino, _ *table.Inode)   { k.freed = append(k.freed, ino) }

// An inode without a name goes, with its content, unless something needs it still: then it
// is an orphan, which a later start finds. What the remote has stays as a record.
func TestShed(t *testing.T) {
	const ino, sub, outer = 10, 11, 12
	file := table.Inode{Mode: syscall.S_IFREG, State: table.Whole}
	dir := table.Inode{Mode: syscall.S_IFDIR}
	remote := func(tx *Tx) { name(tx, link(table.Root, "r"), 0, ino) }
	for what, c := range map[string]struct {
		n                             table.Inode
		before                        func(*Tx)
		keeps                         bool
		there, orphan, freed, content bool
	}{
		"a file":                       {n: file, freed: true},
		"a file of which nothing came": {n: table.Inode{Mode: syscall.S_IFREG}},
		"one with a name":              {n: file, before: func(tx *Tx) { name(tx, link(table.Root, "f"), ino, 0) }, there: true, content: true},
		"one that the kernel knows":    {n: file, before: func(tx *Tx) { tx.Refer(ino) }, there: true, orphan: true, content: true},
		"one that is kept":             {n: file, keeps: true, there: true, orphan: true, content: true},
		"one that was an orphan":       {n: file, before: func(tx *Tx) { tx.SetOrphan(ino, true) }, freed: true},
		"one at the remote":            {n: file, before: remote, there: true, freed: true},
		"one at the remote, kept":      {n: file, before: remote, keeps: true, there: true, orphan: true, content: true},
		"a directory":                  {n: dir},
		"one that hands names over":    {n: dir, before: func(tx *Tx) { tx.Edit(ino).From = ">12" }, there: true, orphan: true},
		"one with something open":      {n: dir, before: func(tx *Tx) { name(tx, link(ino, "sub"), 0, sub) }, there: true, orphan: true},
		"one with that at the remote":  {n: dir, before: func(tx *Tx) { remote(tx); name(tx, link(ino, "sub"), 0, sub) }, there: true},
	} {
		t.Run(what, func(t *testing.T) {
			tr, k := newTree(t, Options{}), &keeper{keeps: c.keeps}
			tr.do(t, func(tx *Tx) {
				n := c.n
				tx.Put(ino, &n)
				tx.Put(sub, &table.Inode{})
				tx.Put(outer, &table.Inode{})
				if c.before != nil {
					c.before(tx)
				}
			})
			assert.OK(t, tr.Update(func(tx *Tx) error { tx.Shed(ino); return nil }, k))
			v := tr.Lock()
			defer tr.Unlock()
			n := v.Inode(ino)
			assert.Equal(t, n != nil, c.there, "it is there")
			assert.Equal(t, v.IsOrphan(ino), c.orphan, "it is an orphan")
			assert.Equal(t, len(v.Orphans()) == 1, c.orphan, "there are orphans")
			assert.Equal(t, len(k.freed) == 1, c.freed, "its content was let go")
			assert.Equal(t, n != nil && n.State == table.Whole, c.content, "it has content")
		})
	}
}

// The root is never shed, nor what is not there.
func TestShedOfNothing(t *testing.T) {
	tr := newTree(t, Options{})
	tr.do(t, func(tx *Tx) {
		tx.Shed(table.Root)
		tx.Shed(99)
		assert.Slice(t, tx.Orphans(), nil, "orphans")
		assert.False(t, tx.Inode(table.Root) == nil, "the root is gone")
	})
}

// A directory that was removed locally goes with the last thing that is open about a name
// in it: what the remote has, or an attempt.
func TestVacated(t *testing.T) {
	const dir, file = 10, 11
	for what, end := range map[string]func(*Tx, table.Link){
		"the remote has it no more": func(tx *Tx, l table.Link) { tx.SetRemote(l, nil) },
		"an attempt came to nothing": func(tx *Tx, l table.Link) {
			tx.SetAttempt(l, &table.Attempt{Op: "1"})
			rec := tx.Record(l)
			rec.Remote = nil
			tx.SetName(l, rec)
			tx.Shed(dir)
			assert.False(t, tx.Inode(dir) == nil, "an attempt is nothing")
			tx.SetAttempt(l, nil)
		},
	} {
		t.Run(what, func(t *testing.T) {
			tr, l := newTree(t, Options{}), link(dir, "f")
			tr.do(t, func(tx *Tx) {
				tx.Put(dir, &table.Inode{Mode: syscall.S_IFDIR})
				tx.Put(file, &table.Inode{})
				name(tx, l, 0, file)
				tx.Shed(dir)
				assert.True(t, tx.IsOrphan(dir), "it is gone")
				end(tx, l)
				assert.True(t, tx.Inode(dir) == nil && !tx.IsOrphan(dir), "it is there still")
			})
		})
	}
}

// What we change at the remote ends an attempt at it, and outdates looks at it; an attempt
// has a name be tried again that was held back.
func TestRemoteSide(t *testing.T) {
	const file = 10
	tr, l := newTree(t, Options{}), link(table.Root, "f")
	tr.do(t, func(tx *Tx) {
		tx.Put(file, &table.Inode{ContentVersion: 1})
		tx.SetName(l, table.Name{Ino: file, Held: &table.Held{}})
		tx.Mark(l)
		o := tx.Observe()
		tx.SetAttempt(l, &table.Attempt{Op: "1"})
		rec := tx.Record(l)
		assert.True(t, rec.Attempt != nil && rec.Held == nil && rec.Seq != 0, "the record of an attempt")
		tx.SetRemote(l, &table.Remote{Ino: file, Kind: providers.KindFile, ContentVersion: 1})
		rec = tx.Record(l)
		assert.True(t, rec.Attempt == nil && rec.Remote.Ino == file && rec.Seq == 0, "the record of what was sent")
		_, ours := tx.IsOutdated(o, l)
		assert.True(t, ours, "a look is believed")
		tx.SetAttempt(link(table.Root, "none"), nil)
		assert.Slice(t, tx.Changed(), []table.Link{l, l, l}, "changed")
	})
}
