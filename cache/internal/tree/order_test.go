package tree

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A name differs when the remote does not have under it what is there locally, or may not.
func TestDiffers(t *testing.T) {
	const file, dir, other = 10, 11, 12
	at := func(ino table.Ino, content, attr uint64) *table.Remote {
		return &table.Remote{Ino: ino, Kind: providers.KindFile, ContentVersion: content, AttrGen: attr}
	}
	for what, c := range map[string]struct {
		rec               table.Name
		differs, withAttr bool
	}{
		"nothing":                  {table.Name{}, false, false},
		"the same":                 {table.Name{Ino: file, Remote: at(file, 2, 2)}, false, false},
		"new":                      {table.Name{Ino: file}, true, true},
		"removed":                  {table.Name{Remote: at(file, 2, 2)}, true, true},
		"another":                  {table.Name{Ino: other, Remote: at(file, 2, 2)}, true, true},
		"other content":            {table.Name{Ino: file, Remote: at(file, 1, 2)}, true, true},
		"other attributes":         {table.Name{Ino: file, Remote: at(file, 2, 1)}, false, true},
		"of a directory":           {table.Name{Ino: dir, Remote: at(dir, 1, 2)}, false, false},
		"attributes of one":        {table.Name{Ino: dir, Remote: at(dir, 2, 1)}, false, true},
		"nothing, with an attempt": {table.Name{Attempt: &table.Attempt{}}, true, true},
		"the same, with one":       {table.Name{Ino: file, Remote: at(file, 2, 2), Attempt: &table.Attempt{}}, true, true},
		"local":                    {table.Name{Ino: file, Local: true}, false, false},
		"local, over another":      {table.Name{Ino: file, Local: true, Remote: at(other, 2, 2)}, true, true},
		"gone":                     {table.Name{Ino: 99, Remote: at(99, 1, 1)}, false, false},
	} {
		for _, attributes := range []bool{false, true} {
			tr, want := newTree(t, Options{Attributes: attributes}), c.differs
			if attributes {
				want = c.withAttr
			}
			tr.do(t, func(tx *Tx) {
				tx.Put(file, &table.Inode{ContentVersion: 2, AttrGen: 2})
				tx.Put(dir, &table.Inode{Mode: syscall.S_IFDIR, ContentVersion: 2, AttrGen: 2})
				assert.Equal(t, tx.Differs(c.rec), want, what, "with attributes:", attributes)
			})
		}
	}
}

// marks is an observer that notes what it was told of names.
type marks struct {
	unobserved
	told []mark
}

type mark struct {
	name     string
	was, now bool
}

func (m *marks) Marked(l table.Link, was, now uint64) {
	m.told = append(m.told, mark{l.Name, was != 0, now != 0})
}

// Each change of a name, or of what is behind it, puts it into the order when its sides
// differ then, and takes it out when they agree; who follows the transaction is told. A
// name keeps its place as long as it differs.
func TestOrder(t *testing.T) {
	const file = 10
	now := time.Unix(1000, 0)
	tr := newTree(t, Options{Attributes: true, Now: func() time.Time { return now }})
	a, b := link(table.Root, "a"), link(table.Root, "b")
	order := func() (all []string) {
		v := tr.Lock()
		defer tr.Unlock()
		v.Dirty(0, func(_ uint64, l table.Link) bool {
			all = append(all, l.Name)
			return true
		})
		return all
	}
	sent := func(tx *Tx, l table.Link) { // the remote has what is there locally
		rec, n := tx.Record(l), tx.Inode(file)
		rec.Remote = &table.Remote{Ino: file, Kind: providers.KindFile, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen}
		tx.SetName(l, rec)
		tx.Mark(l)
	}
	for _, c := range []struct {
		what  string
		do    func(*Tx)
		told  []mark
		order []string
	}{
		{"made", func(tx *Tx) {
			tx.Put(file, &table.Inode{})
			tx.SetLocal(a, file, false, false)
		}, []mark{{"a", false, true}}, []string{"a"}},
		{"linked", func(tx *Tx) { tx.SetLocal(b, file, false, false) }, []mark{{"b", false, true}}, []string{"a", "b"}},
		{"sent", func(tx *Tx) { sent(tx, a) }, []mark{{"a", true, false}}, []string{"b"}},
		{"written", func(tx *Tx) { tx.ContentChanged(file, 7, table.TimeOf(now)) },
			[]mark{{"a", false, true}, {"b", true, true}}, []string{"b", "a"}},
		{"both sent", func(tx *Tx) { sent(tx, a); sent(tx, b) }, []mark{{"a", true, false}, {"b", true, false}}, nil},
		{"chmod", func(tx *Tx) { tx.AttrChanged(file) }, []mark{{"a", false, true}, {"b", false, true}}, []string{"a", "b"}},
		{"stays", func(tx *Tx) { tx.SetLocal(a, file, true, false) }, []mark{{"a", true, true}}, []string{"a", "b"}},
		{"hidden", func(tx *Tx) { tx.SetLocal(a, file, true, true) }, []mark{{"a", true, false}}, []string{"b"}},
		{"removed", func(tx *Tx) { tx.SetLocal(b, 0, true, false) }, []mark{{"b", true, true}}, []string{"b"}},
		{"touched", func(tx *Tx) { tx.Touch(b) }, nil, []string{"b"}},
		{"of no name", func(tx *Tx) { tx.Mark(link(table.Root, "c")) }, nil, []string{"b"}},
	} {
		o, changed := &marks{}, []table.Link(nil)
		assert.OK(t, tr.Update(func(tx *Tx) error {
			c.do(tx)
			changed = slices.Clone(tx.Changed())
			return nil
		}, o), c.what)
		assert.Slice(t, o.told, c.told, c.what)
		assert.Slice(t, order(), c.order, c.what)
		want := len(c.told)
		assert.True(t, (c.what == "touched" || len(changed) == want) && (c.what != "touched" || len(changed) == 1), c.what, "it concerns", changed)
	}
	v := tr.Lock()
	defer tr.Unlock()
	n := v.Inode(file)
	assert.True(t, n.ContentVersion == 1 && n.AttrGen == 1 && n.Size == 7 && n.Mtime == table.TimeOf(now) && n.Ctime == table.TimeOf(now), "the inode is", n)
	assert.False(t, v.Record(b).Local, "a name that stands for nothing stays local")
}

// A request of the kernel that changes a name knows what it stands for.
func TestSetLocalIsNotStale(t *testing.T) {
	tr, l := newTree(t, Options{}), link(table.Root, "f")
	tr.do(t, func(tx *Tx) {
		tx.Put(10, &table.Inode{})
		tx.Refer(10)
		tx.MarkStaleDentry(l, 10)
		tx.SetLocal(l, 10, false, false)
		assert.False(t, tx.TakeStaleDentries(l), "it is stale")
	})
}

// A change of its names changes the times of a directory, and the loss of a name that of
// change of an inode, which goes with its last.
func TestTimesOfNames(t *testing.T) {
	const file = 10
	now := time.Unix(1000, 0)
	tr := newTree(t, Options{Now: func() time.Time { return now }})
	tr.do(t, func(tx *Tx) {
		tx.Put(file, &table.Inode{})
		for _, l := range []table.Link{link(table.Root, "a"), link(table.Root, "b")} {
			tx.SetLocal(l, file, false, false)
		}
		tx.DirChanged(table.Root)
		root := tx.Inode(table.Root)
		assert.True(t, root.Mtime == table.TimeOf(now) && root.Ctime == root.Mtime, "times of the directory")
		tx.SetLocal(link(table.Root, "a"), 0, false, false)
		tx.NameLost(file)
		assert.Equal(t, tx.Inode(file).Ctime, table.TimeOf(now), "time of change")
		tx.SetLocal(link(table.Root, "b"), 0, false, false)
		tx.NameLost(file)
		assert.True(t, tx.Inode(file) == nil, "it is there still")
	})
}

func TestKindOf(t *testing.T) {
	tr := newTree(t, Options{})
	tr.do(t, func(tx *Tx) {
		tx.Put(10, &table.Inode{Mode: syscall.S_IFDIR})
		tx.Put(11, &table.Inode{})
		link := &table.Remote{Kind: providers.KindSymlink}
		for rec, want := range map[table.Name]providers.Kind{
			{Ino: 10, Remote: link}: providers.KindDir, {Ino: 11}: providers.KindFile, {Remote: link}: providers.KindSymlink, {}: providers.KindFile,
		} {
			assert.Equal(t, tx.KindOf(rec), want)
		}
	})
}
