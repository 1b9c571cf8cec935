// Package historytest is a working copy that is no more than a history needs: a tree in
// memory, content in a directory of the test, and a clock that the test moves.
//
//	c := historytest.New(t, history.Options{})
//	c.Do("mkdir d", "put d/f one", "turn 7", "mv d/f g", "rm g")
//	c.Later(time.Hour)
//	lines := c.Records()
package historytest

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Copy is a working copy. All of it is the test's alone: nothing happens in the background.
type Copy struct {
	*testing.T
	Tree   *tree.Tree
	Store  *content.Store
	Dir    string // of Store
	Keeper *history.Keeper
	By     files.Caller       // asks for what is done
	Head   providers.Revision // that the table has; "": the remote keeps no revisions

	now     time.Time
	unlinks *files.DeferredUnlinks
	away    map[table.Ino]string // content that only the remote has
}

// New is a working copy in which there is nothing. Zero options are those of a volume.
func New(t *testing.T, o history.Options) *Copy {
	t.Helper()
	tab := assert.Of(table.Open("/tree", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { assert.OK(t, tab.Close()) })
	c := &Copy{T: t, now: time.Unix(1_700_000_000, 0), away: map[table.Ino]string{}}
	c.Dir = t.TempDir()
	c.Store = assert.Of(content.Open(c.Dir, content.Options{Ballast: -1, Floor: -1})).OK(t)
	t.Cleanup(func() { assert.OK(t, c.Store.Close()) })
	c.Tree = tree.New(tab, tree.Options{Now: c.Now})
	o.Tree, o.Store, o.Open, o.Update, o.Now, o.Context = c.Tree, c.Store, files.NewOpenSet(), c.Update, c.Now, t.Context()
	o.Log = slog.New(slog.DiscardHandler)
	o.Revision = func(*tree.View) (providers.Revision, bool) { return c.Head, c.Head != "" }
	o.Ended = func(_ chores.Activity, err error) { assert.OK(t, err) }
	if o.Budget == (history.Budget{}) {
		o.Budget = history.Budget{Versions: 1000, Age: 1e6 * time.Hour, Bytes: 1 << 30}
	}
	c.Keeper = history.New(o)
	c.unlinks = files.NewDeferredUnlinks(files.UnlinkOptions{Tree: c.Tree, Remove: c.Store.Remove, History: c.Keeper})
	c.Change(func(tx history.Tx) { tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR | 0o755, Loaded: true}) })
	return c
}

// Now is the time. No two things happen at once.
func (c *Copy) Now() time.Time {
	c.now = c.now.Add(time.Microsecond)
	return c.now
}

// Later lets time pass, and what is due happen.
func (c *Copy) Later(d time.Duration) {
	c.now = c.now.Add(d)
	c.Settle()
	c.Keeper.Work()
}

// Settle has content go that nothing leads to any more.
func (c *Copy) Settle() { c.unlinks.Run() }

// Update is a transaction of the tree, and what its history notes.
func (c *Copy) Update(do func(history.Tx) error) error {
	o := &observer{c: c}
	by := c.By
	return c.Tree.Update(func(t *tree.Tx) error {
		o.tx = c.Keeper.In(t, &by)
		return do(o.tx)
	}, o)
}

// Change is an Update that does not fail.
func (c *Copy) Change(do func(history.Tx)) {
	c.Helper()
	assert.OK(c, c.Update(func(tx history.Tx) error { do(tx); return nil }))
}

// observer has content of which nothing is left go to the history.
type observer struct {
	c  *Copy
	tx history.Tx
}

func (o *observer) Full(bool) bool                        { return false }
func (o *observer) Marked(table.Link, uint64, uint64)     {}
func (o *observer) Nameless(table.Ino, *table.Inode) bool { return false }
func (o *observer) Committed()                            {}
func (o *observer) Undone()                               {}
func (o *observer) Freed(ino table.Ino, n *table.Inode) {
	goes := o.tx.Freed(ino, n)
	o.tx.Later(func() { o.c.unlinks.Add(ino, goes) })
}

// Find walks to a path. An inode of 0 says that the name is free; the directory is 0 when
// not even that is there.
func (c *Copy) Find(path string) (table.Link, table.Ino, error) {
	v := c.Tree.Lock()
	defer c.Tree.Unlock()
	return find(v, path)
}

func find(v *tree.View, path string) (l table.Link, ino table.Ino, err error) {
	ino = table.Root
	for _, name := range providers.MustLocator(path).Parts() {
		switch n := v.Inode(ino); {
		case n == nil:
			return table.Link{}, 0, nil
		case !n.IsDir():
			return table.Link{}, 0, syscall.ENOTDIR
		}
		l = table.Link{Dir: ino, Name: name}
		ino = v.Record(l).Ino
	}
	return l, ino, nil
}

// At is the name at a path, whose directory is there, and its inode.
func (c *Copy) At(path string) (table.Link, table.Ino) {
	c.Helper()
	l, ino, err := c.Find(path)
	assert.Must(c, err == nil && l.Dir != 0, path, "has no directory", err)
	return l, ino
}

// Inode is what the table has of a path.
func (c *Copy) Inode(path string) table.Inode {
	c.Helper()
	_, ino := c.At(path)
	n := c.Tree.Lock().Inode(ino)
	defer c.Tree.Unlock()
	assert.Must(c, n != nil, path, "is not there")
	return *n
}

// Content opens what an inode has. Of the remote's it is fetched.
func (c *Copy) Content(ino table.Ino) (io.ReadCloser, int64, error) {
	if data, ok := c.away[ino]; ok {
		made, err := c.Store.Create(ino, "")
		if err != nil {
			return nil, 0, err
		}
		if _, err = made.WriteAt(c.Context(), []byte(data), 0); err != nil {
			return nil, 0, err
		}
		made.Release()
		delete(c.away, ino)
		c.Change(func(tx history.Tx) { tx.Edit(ino).State = table.Whole })
	}
	f, err := c.Store.Open(ino)
	if err != nil {
		return nil, 0, err
	}
	return &reader{io.NewSectionReader(at{c.Context(), f}, 0, f.Size()), f}, f.Size(), nil
}

// reader reads content, and releases it.
type reader struct {
	io.Reader
	f *content.File
}

func (r *reader) Close() error { r.f.Release(); return nil }

// at reads content from a place on.
type at struct {
	ctx context.Context
	f   *content.File
}

func (a at) ReadAt(p []byte, off int64) (int, error) { return a.f.ReadAt(a.ctx, p, off) }

// Files are all that is there, as "dir/", "link -> target" and "file: content".
func (c *Copy) Files() (lines []string) {
	c.Helper()
	var walk func(dir table.Ino, path string)
	walk = func(dir table.Ino, path string) {
		names := map[string]table.Ino{}
		var order []string
		v := c.Tree.Lock()
		v.Names(dir, "", func(name string, rec table.Name) bool {
			if rec.Ino != 0 {
				names[name], order = rec.Ino, append(order, name)
			}
			return true
		})
		c.Tree.Unlock()
		for _, name := range order {
			n := c.Inode(path + name)
			switch {
			case n.IsDir():
				lines = append(lines, path+name+"/")
				walk(names[name], path+name+"/")
			case n.IsSymlink():
				lines = append(lines, path+name+" -> "+n.Target)
			default:
				r, _, err := c.Content(names[name])
				lines = append(lines, path+name+": "+ReadAll(c.T, r, err))
			}
		}
	}
	walk(table.Root, "")
	return lines
}

// ReadAll reads what was opened without an error, and closes it.
func ReadAll(t *testing.T, r io.ReadCloser, err error) string {
	t.Helper()
	assert.OK(t, err)
	data := assert.Of(io.ReadAll(r)).OK(t)
	assert.OK(t, r.Close())
	return string(data)
}

// Has wants these Files.
func (c *Copy) Has(want ...string) {
	c.Helper()
	assert.Equal(c, strings.Join(c.Files(), "\n"), strings.Join(want, "\n"), "the files are")
}
