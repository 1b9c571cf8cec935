package historytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Do runs a script, a line each. Programs put PATH CONTENT, mkdir PATH, rm PATH (a directory,
// too), mv FROM TO, swap A B, sym TARGET PATH, chmod PATH MODE and read PATH, which hydrates it.
// The remote has theirs PATH CONTENT, which is listed and not hydrated; after evict PATH it alone
// has the content, and after sent all that there is. Besides, there are wait and turn NAME.
func (c *Copy) Do(script ...string) {
	c.Helper()
	for _, line := range script {
		f := append(strings.SplitN(line, " ", 3), "", "")
		switch f[0] {
		case "put":
			c.put(f[1], f[2])
		case "mkdir":
			c.make(f[1], &table.Inode{Mode: syscall.S_IFDIR | 0o755, Loaded: true})
		case "sym":
			c.make(f[2], &table.Inode{Mode: syscall.S_IFLNK | 0o777, Target: f[1]})
		case "rm":
			l, _ := c.At(f[1])
			c.Change(func(tx history.Tx) { c.Drop(tx, l, history.WhyRemoved) })
		case "mv":
			c.move(f[1], f[2])
		case "swap":
			c.swap(f[1], f[2])
		case "chmod":
			_, ino := c.At(f[1])
			mode := assert.Of(strconv.ParseUint(f[2], 8, 32)).OK(c)
			c.Change(func(tx history.Tx) { tx.Edit(ino).Mode = syscall.S_IFREG | uint32(mode); tx.AttrChanged(ino) })
		case "theirs":
			c.theirs(f[1], f[2])
		case "evict":
			c.evict(f[1])
		case "sent":
			c.Change(func(tx history.Tx) { sent(tx, table.Root) })
		case "read":
			c.read(f[1])
		case "wait":
			c.Later(3 * time.Second)
		case "turn":
			c.Later(3 * time.Second)
			c.Keeper.SetActor(history.Actor{Turn: f[1]})
		default:
			c.Fatalf("what is %q?", line)
		}
	}
}

// Enter gives a free name a new inode.
func (c *Copy) Enter(tx history.Tx, l table.Link, ino table.Ino, n *table.Inode) {
	assert.Must(c, tx.Record(l).Ino == 0, l.Name, "is there")
	now := table.TimeOf(c.Now())
	n.Mtime, n.Ctime, n.Birth, n.AttrGen = now, now, now.Time().UnixNano(), 1
	n.ContentVersion = max(n.ContentVersion, 1)
	tx.Put(ino, n)
	tx.SetLocal(l, ino, false, false)
}

// Place is At in a transaction.
func (c *Copy) Place(tx history.Tx, path string) (table.Link, table.Ino) {
	l, ino, err := find(tx.View, path)
	assert.Must(c, err == nil && l.Dir != 0, path, "has no directory", err)
	return l, ino
}

// make gives a free name what has no content.
func (c *Copy) make(path string, n *table.Inode) {
	c.Change(func(tx history.Tx) {
		ino := tx.Alloc()
		l, _ := c.Place(tx, path)
		c.Enter(tx, l, ino, n)
		tx.Made(l, ino, history.WhyMade)
	})
}

func (c *Copy) put(path, data string) {
	c.Helper()
	if _, ino := c.At(path); ino != 0 {
		h := c.Open(path)
		h.Write(data)
		h.Close()
		return
	}
	ino := c.MakeFile(path, data)
	c.Change(func(tx history.Tx) { tx.Version(tx.Inode(ino), ino, "written") })
}

// MakeFile gives a free name a file, which its writer has not closed yet.
func (c *Copy) MakeFile(path, data string) table.Ino {
	c.Helper()
	made := assert.Of(files.Make(c.Context(), c.Tree, c.Store, path, strings.NewReader(data))).OK(c)
	c.Change(func(tx history.Tx) {
		l, _ := c.Place(tx, path)
		c.Enter(tx, l, made.Ino, &table.Inode{Mode: syscall.S_IFREG | 0o644, State: table.Whole, Size: made.Size, Blocks: made.Blocks})
	})
	return made.Ino
}

// Drop takes a name away from what has it.
func (c *Copy) Drop(tx history.Tx, l table.Link, why string) {
	ino := tx.Record(l).Ino
	assert.Must(c, ino != 0, l.Name, "is not there")
	assert.OK(c, tx.Ended(l, ino, why))
	tx.SetLocal(l, 0, false, false)
	tx.NameLost(ino)
}

func (c *Copy) move(from, to string) {
	c.Helper()
	c.Change(func(tx history.Tx) {
		a, ino := c.Place(tx, from)
		b, over := c.Place(tx, to)
		assert.Must(c, ino != 0, from, "is not there")
		if over != 0 {
			c.Drop(tx, b, history.WhyReplaced)
		}
		tx.SetLocal(a, 0, false, false)
		tx.SetLocal(b, ino, false, false)
		tx.Moved(ino, a, b, history.WhyRenamed)
	})
}

func (c *Copy) swap(from, to string) {
	c.Helper()
	c.Change(func(tx history.Tx) {
		a, x := c.Place(tx, from)
		b, y := c.Place(tx, to)
		tx.SetLocal(a, y, false, false)
		tx.SetLocal(b, x, false, false)
		tx.Moved(x, a, b, history.WhyRenamed)
		tx.Moved(y, b, a, history.WhyRenamed)
	})
}

// theirs is what a first listing brings, of which the history knows nothing.
func (c *Copy) theirs(path, data string) {
	c.Change(func(tx history.Tx) {
		ino := tx.Alloc()
		n := &table.Inode{Mode: syscall.S_IFREG | 0o644, Size: int64(len(data)), Pulled: true}
		l, _ := c.Place(tx, path)
		c.Enter(tx, l, ino, n)
		version := providers.Version{ETag: fmt.Sprint("theirs ", ino), Size: n.Size}
		tx.SetRemote(l, tree.RemoteOf(providers.Info{Kind: providers.KindFile, Version: version}, ino, tx.Inode(ino)))
		c.away[ino] = data
	})
}

// sent has the remote have what is in a directory.
func sent(tx history.Tx, dir table.Ino) {
	all := map[string]table.Name{}
	tx.Names(dir, "", func(name string, rec table.Name) bool {
		all[name] = rec
		return true
	})
	for name, rec := range all {
		l, info := table.Link{Dir: dir, Name: name}, providers.Info{Kind: providers.KindDir}
		n := tx.Inode(rec.Ino)
		switch {
		case n == nil:
			tx.SetRemote(l, nil)
			continue
		case !n.IsDir():
			info = providers.Info{Kind: providers.KindFile, Version: providers.Version{ETag: fmt.Sprint(rec.Ino, " ", n.ContentVersion), Size: n.Size}}
		}
		if rec.Remote == nil || rec.Remote.Ino != rec.Ino || rec.Remote.ContentVersion != n.ContentVersion {
			tx.SetRemote(l, tree.RemoteOf(info, rec.Ino, n))
		}
		if n.IsDir() {
			sent(tx, rec.Ino)
		}
	}
}

// evict leaves the content of a file to the remote.
func (c *Copy) evict(path string) {
	c.Helper()
	_, ino := c.At(path)
	c.away[ino] = c.read(path)
	c.Store.Remove(ino)
	c.Change(func(tx history.Tx) { tx.Edit(ino).State = table.None })
}

func (c *Copy) read(path string) string {
	c.Helper()
	_, ino := c.At(path)
	r, _, err := c.Content(ino)
	return ReadAll(c.T, r, err)
}

// A Handle is a file that a program has open.
type Handle struct {
	c     *Copy
	ino   table.Ino
	wrote bool
}

// Open opens a file, for writing too.
func (c *Copy) Open(path string) *Handle {
	c.Helper()
	_, ino := c.At(path)
	assert.Must(c, ino != 0, path, "is not there")
	c.Tree.Lock().Refer(ino)
	c.Tree.Unlock()
	return &Handle{c: c, ino: ino}
}

// Write replaces what is in the file.
func (h *Handle) Write(data string) {
	h.c.Helper()
	h.c.Keeper.Before(h.ino)
	open := h.c.Store.Open
	if _, away := h.c.away[h.ino]; away {
		delete(h.c.away, h.ino)
		open = func(ino table.Ino) (*content.File, error) { return h.c.Store.Create(ino, "") }
	}
	h.c.Change(func(tx history.Tx) {
		n := tx.Edit(h.ino)
		n.Writing, n.State = true, table.Whole
	})
	f := assert.Of(open(h.ino)).OK(h.c)
	defer f.Release()
	assert.OK(h.c, f.Truncate(h.c.Context(), 0))
	assert.OK(h.c, assert.ErrOf(f.WriteAt(h.c.Context(), []byte(data), 0)))
	h.wrote = true
}

// Close is the last close.
func (h *Handle) Close() {
	h.c.Helper()
	h.c.Tree.Lock().DropReferences(h.ino, 1)
	h.c.Tree.Unlock()
	f := assert.Of(h.c.Store.Open(h.ino)).OK(h.c)
	size := f.Size()
	f.Release()
	h.c.Change(func(tx history.Tx) {
		if h.wrote {
			tx.ContentChanged(h.ino, size, table.TimeOf(h.c.Now()))
			tx.Edit(h.ino).Writing = false
			tx.Version(tx.Inode(h.ino), h.ino, "written")
		}
		tx.Shed(h.ino)
	})
}

// Records are the records, the newest first, as "change why path: content": what the store
// keeps of it, "=" for what is there now, "-" for nothing.
func (c *Copy) Records() (lines []string) {
	c.Helper()
	type kept struct {
		ino table.Ino
		id  uint64
	}
	var of []kept
	assert.OK(c, c.Tree.View(func(v *tree.View) error {
		v.Scan(history.Prefix, "", func(key string, value []byte) bool {
			id, r := history.IDOf(key), history.Decode(value)
			line := r.Change + " " + r.Why + " " + r.Where(v)
			if r.From != nil {
				line += " from " + r.From.Path
			}
			if at := history.Get(v, r.Of); at != nil {
				id, r = r.Of, at
			}
			k := kept{}
			switch {
			case r.Kept:
				k = kept{r.Ino, r.KeptID(id)}
				line += ": "
			case r.IsCurrent(v):
				line += ": ="
			default:
				line += ": -"
			}
			lines, of = append(lines, line), append(of, k)
			return true
		})
		return nil
	}))
	for i, k := range of {
		if k.id != 0 {
			f, err := c.Keeper.OpenKept(k.ino, k.id)
			lines[i] += ReadAll(c.T, f, err)
		}
	}
	slices.Reverse(lines)
	return lines
}
