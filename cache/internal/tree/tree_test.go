package tree

import (
	"errors"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// seen is an observer that counts.
type seen struct {
	unobserved
	committed, undone int
	wrote             bool
	tx                *Tx
}

func (s *seen) Undone() { s.undone++ }
func (s *seen) Committed() {
	s.committed++
	s.wrote = s.tx.Wrote()
}

func newTree(t *testing.T, o Options) *Tree {
	t.Helper()
	tab := assert.Of(table.Open("/tree", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	tr := New(tab, o)
	tr.do(t, func(tx *Tx) { tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true}) })
	return tr
}

func (t *Tree) do(test *testing.T, f func(*Tx)) {
	test.Helper()
	err := t.Update(func(tx *Tx) error {
		f(tx)
		return nil
	}, nil)
	assert.OK(test, err)
}

func link(dir table.Ino, name string) table.Link { return table.Link{Dir: dir, Name: name} }

// name gives an inode a local name, and has the remote have what it is told under it.
func name(tx *Tx, l table.Link, local, remote table.Ino) {
	rec := table.Name{Ino: local}
	if remote != 0 {
		rec.Remote = &table.Remote{Ino: remote, Kind: providers.KindDir}
	}
	tx.SetName(l, rec)
}

func at(p providers.Locator, ok bool) string {
	if !ok {
		return "-"
	}
	return p.String()
}

// A change is there as a whole or not at all, whatever ends it, and who waits for the
// lock gets it.
func TestUpdate(t *testing.T) {
	l, broken := link(table.Root, "f"), errors.New("broken")
	for what, c := range map[string]struct {
		do   func(*Tx) error
		want error
		last bool // it panics
	}{
		"succeeds": {do: func(*Tx) error { return nil }},
		"fails":    {do: func(*Tx) error { return broken }, want: broken},
		"panics":   {do: func(*Tx) error { panic(broken) }, want: broken, last: true},
	} {
		t.Run(what, func(t *testing.T) {
			tr, o, ran := newTree(t, Options{}), &seen{}, 0
			err := func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				return tr.Update(func(tx *Tx) error {
					o.tx = tx
					tx.Later(func() {
						tr.Lock() // it is free by then
						tr.Unlock()
						ran++
					})
					tx.Put(7, &table.Inode{})
					tx.SetName(l, table.Name{Ino: 7})
					return c.do(tx)
				}, o)
			}()
			assert.Equal(t, err, c.want)
			v := tr.Lock()
			defer tr.Unlock()
			there := v.Record(l).Ino == 7
			if done := c.want == nil; there != done || (ran == 1) != done || (o.committed == 1) != done || o.undone == o.committed || o.wrote != done {
				t.Errorf("the name is there: %v; later ran %d times; told of %d commits (wrote %v) and %d ends", there, ran, o.committed, o.wrote, o.undone)
			}
		})
	}
}

// Who has a View cannot come to what changes the table.
func TestViewReads(t *testing.T) {
	tr := newTree(t, Options{})
	v := tr.Lock()
	defer tr.Unlock()
	var reader any = v.Reader
	_, writes := reader.(table.Writer)
	_, commits := reader.(interface{ Commit() error })
	assert.False(t, writes || commits, "a View leads to a change of the table")
}

// A name tells what it took from an inode, unless it had it already or took it from none.
func TestSetName(t *testing.T) {
	tr, l := newTree(t, Options{}), link(table.Root, "f")
	tr.do(t, func(tx *Tx) {
		for _, ino := range []table.Ino{7, 8} {
			tx.Put(ino, &table.Inode{})
		}
		for _, c := range []struct{ to, from table.Ino }{{7, 0}, {7, 0}, {8, 7}, {0, 8}, {7, 0}} {
			from := tx.SetName(l, table.Name{Ino: c.to})
			assert.True(t, from == c.from, "to", c.to, "taken from", from, "want", c.from)
		}
		assert.Slice(t, tx.Unnamed(), []table.Ino{7, 8}, "unnamed")
	})
}

// A directory d was made at the remote, renamed to e locally, with f in it; x was removed
// locally and has y at the remote still.
func TestPaths(t *testing.T) {
	const d, f, x = 10, 11, 12
	tr := newTree(t, Options{})
	tr.do(t, func(tx *Tx) {
		for _, ino := range []table.Ino{d, f, x} {
			tx.Put(ino, &table.Inode{Loaded: ino == d})
		}
		name(tx, link(table.Root, "d"), 0, d)
		name(tx, link(table.Root, "e"), d, 0)
		name(tx, link(d, "f"), f, f)
		name(tx, link(table.Root, "x"), 0, x)
		name(tx, link(x, "y"), 0, f)
	})
	v := tr.Lock()
	defer tr.Unlock()
	for _, c := range []struct {
		l                    table.Link
		local, remote, shown string
	}{
		{link(table.Root, "new"), "new", "new", "new"},
		{link(d, "f"), "e/f", "d/f", "e/f"},
		{link(x, "y"), "-", "x/y", "x/y"},
		{link(99, "z"), "-", "-", "z"},
	} {
		if local, remote, shown := at(v.LocalPath(c.l)), at(v.RemotePath(c.l)), v.PathFor(c.l); local != c.local || remote != c.remote || shown != c.shown {
			t.Errorf("%v: local %q, remote %q, shown %q; want %q, %q, %q", c.l, local, remote, shown, c.local, c.remote, c.shown)
		}
	}
	if local, remote := at(v.LocalPathOf(d)), at(v.RemotePathOf(d)); local != "e" || remote != "d" {
		t.Errorf("the directory is at %q, and at %q at the remote", local, remote)
	}
	for path, want := range map[string]table.Ino{"": table.Root, "d": d, "d/f": f, "e": 0, "x/y": f} {
		dir, ok := v.DirAtRemotePath(providers.MustLocator(path))
		assert.True(t, ok == (want != 0) && dir == want, "the remote has", dir, "at", path, ok, "want", want)
	}
	assert.True(t, v.IsBelow(d, table.Root) && v.IsBelow(d, d) && !v.IsBelow(table.Root, d) && !v.IsBelow(x, table.Root), "IsBelow is wrong")
	assert.True(t, !v.IsNowhere(d) && !v.IsNowhere(x) && !v.IsNowhere(table.Root) && v.IsNowhere(99), "IsNowhere is wrong")
	assert.Slice(t, v.KnownRemoteDirs(), []table.Ino{table.Root, d}, "known")
	assert.True(t, v.HasRemoteNames(x) && !v.HasRemoteNames(f), "HasRemoteNames is wrong")
}

// While a directory is being renamed at the remote nobody can say where it is, nor where
// what is below it is; a name whose move is known to have come too late counts no more.
func TestMoving(t *testing.T) {
	const d, sub = 10, 11
	tr := newTree(t, Options{})
	old, now := link(table.Root, "d"), link(table.Root, "e")
	attempt := func(a *table.Attempt, seq uint64) {
		tr.do(t, func(tx *Tx) { tx.SetName(now, table.Name{Ino: d, Attempt: a, Seq: seq}) })
	}
	tr.do(t, func(tx *Tx) {
		tx.Put(d, &table.Inode{})
		tx.Put(sub, &table.Inode{})
		name(tx, old, 0, d)
		name(tx, now, d, 0)
		name(tx, link(d, "sub"), sub, sub)
	})
	for _, c := range []struct {
		a    *table.Attempt
		seq  uint64
		want bool
	}{{nil, 1, false}, {&table.Attempt{}, 1, true}, {&table.Attempt{}, 0, false}} {
		attempt(c.a, c.seq)
		v := tr.Lock()
		if v.Moving(d) != c.want || v.Moving(sub) != c.want || v.Moving(table.Root) {
			t.Errorf("attempt %v with seq %d: moving %v, below %v, the root %v", c.a, c.seq, v.Moving(d), v.Moving(sub), v.Moving(table.Root))
		}
		late := map[table.Link]bool{now: true}
		assert.False(t, v.Attempted(v.Record(old), late), "a move that came too late is still taken for one")
		tr.Unlock()
	}
	tr.do(t, func(tx *Tx) { tx.Edit(d).From = ">12" })
	v := tr.Lock()
	defer tr.Unlock()
	if giver, taker := Partners(v.Inode(d)); giver != 0 || taker != 12 || !v.Moving(sub) {
		t.Errorf("names go from %d to %d; moving %v", giver, taker, v.Moving(sub))
	}
}

// A directory that takes over the names of another is at the other's place until that is
// done, with all that is below it; where it is meanwhile nobody can say.
func TestHandOver(t *testing.T) {
	const giver, taker, sub = 10, 11, 12
	tr := newTree(t, Options{})
	tr.do(t, func(tx *Tx) {
		for _, ino := range []table.Ino{giver, taker, sub} {
			tx.Put(ino, &table.Inode{})
		}
		name(tx, link(table.Root, "old"), 0, giver)
		name(tx, link(table.Root, "new"), taker, taker)
		name(tx, link(giver, "sub"), 0, sub)
		name(tx, link(taker, "sub"), sub, 0)
	})
	place := func(where string, moving bool) {
		t.Helper()
		v := tr.Lock()
		defer tr.Unlock()
		assert.Equal(t, at(v.RemotePath(link(giver, "sub"))), where)
		assert.Equal(t, v.Moving(taker), moving, "moving")
	}
	place("old/sub", false)
	tr.do(t, func(tx *Tx) {
		tx.Edit(giver).From = ">11"
		tx.Edit(taker).From = "<10"
	})
	place("new/sub", true)
}
