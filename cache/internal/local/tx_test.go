package local

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// out excludes what is called so.
type out struct{ rules.Excluder }

func (out) Match(path string, _ bool) bool { return path == "out" }

// heard notes what the kernel and the lifecycle bus are told, and where content is placed.
type heard struct {
	fs.Notifier
	told []string
}

func (h *heard) note(what ...any)                     { h.told = append(h.told, strings.TrimSpace(fmt.Sprintln(what...))) }
func (h *heard) Deleted(path string)                  { h.note("deleted", path) }
func (h *heard) Wrote(path string)                    { h.note("wrote", path) }
func (h *heard) EntryChanged(dir fs.Ino, name string) { h.note("entry", dir, name) }
func (h *heard) AttrChanged(ino fs.Ino)               { h.note("attr", ino) }
func (h *heard) SetPath(ino table.Ino, path string)   { h.note("place", ino, path) }

// A change has the history, the content file, the kernel and the lifecycle bus know what
// each of them is to know, the last two when it is committed, and not if it is undone.
func TestTx(t *testing.T) {
	tab := assert.Of(table.Open("/local", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	defer tab.Close()
	store := assert.Of(content.Open(t.TempDir(), content.Options{Ballast: -1, Floor: -1})).OK(t)
	defer store.Close()
	log, open, now := slog.New(slog.DiscardHandler), files.NewOpenSet(), time.Unix(1_700_000_000, 5)
	clock := func() time.Time { return now }
	at := tree.New(tab, tree.Options{Now: clock, Log: log})
	keeper := history.New(history.Options{Tree: at, Store: store, Open: open, Now: clock, Context: t.Context(), Log: log,
		Revision: func(*tree.View) (providers.Revision, bool) { return "", false }})
	heard := &heard{}
	side := &Side{Border: &rules.Border{Exclude: out{}, Ignores: rules.New("")}, Content: heard, Now: clock, Log: log,
		Notifier: func() fs.Notifier { return heard }}
	change := func(do func(tx *Tx) error) error {
		heard.told = nil
		return at.Update(func(tx *tree.Tx) error { return do(&Tx{Side: side, Tx: tx, Notes: keeper.In(tx, &files.Caller{})}) }, nil)
	}
	const f, d, other table.Ino = 100, 101, 102
	name := func(of string) table.Link { return table.Link{Dir: table.Root, Name: of} }
	assert.OK(t, change(func(tx *Tx) error {
		for range 2 * other {
			tx.Alloc()
		}
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		return nil
	}))
	regular := func() *table.Inode { return &table.Inode{Mode: syscall.S_IFREG, ContentVersion: 1, AttrGen: 1} }
	for _, c := range []struct {
		name    string
		do      func(tx *Tx)
		told    string
		records string    // of the change
		changed table.Ino // a directory
	}{
		{"enter", func(tx *Tx) {
			tx.Enter(name("f"), f, regular())
			tx.Enter(name("d"), d, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true, ContentVersion: 1, AttrGen: 1})
		}, "", "", table.Root},
		{"enter what stays", func(tx *Tx) { tx.Enter(name("out"), other, regular()) }, "", "", table.Root},
		{"written, and nothing is local", func(tx *Tx) { tx.Written(f, tx.Inode(f)) }, "wrote f", "written f", 0},
		{"a second name", func(tx *Tx) { tx.SetLocal(table.Link{Dir: d, Name: "g"}, f) }, "", "", 0},
		{"written", func(tx *Tx) {
			tx.ContentChanged(f, 3, table.Time{})
			n := tx.Edit(f)
			n.State = table.Whole
			tx.Written(f, n)
		}, "place 100 f, wrote f, wrote d/g", "written f", 0},
		{"remove one name", func(tx *Tx) { tx.Remove(name("f"), f) }, "deleted f", "ended f", table.Root},
		{"placed where it still is", func(tx *Tx) { tx.Place(f) }, "place 100 d/g", "", 0},
		{"remove the other", func(tx *Tx) { tx.Remove(table.Link{Dir: d, Name: "g"}, f) }, "deleted d/g", "ended d/g", d},
		{"remove a directory", func(tx *Tx) { tx.Remove(name("d"), d) }, "", "ended d", table.Root},
		{"tell", func(tx *Tx) { tx.TellEntry(name("x")); tx.TellAttr(7) }, "entry 1 x, attr 7", "", 0},
		{"tell of what is nowhere", func(tx *Tx) {
			l := table.Link{Dir: d, Name: "x"}
			tx.TellWrote(l)
			tx.TellDeleted(l, regular())
		}, "", "", 0},
	} {
		now = now.Add(time.Second)
		undone := errors.New("it is undone")
		for _, end := range []error{undone, nil} {
			var before, after string
			assert.Is(t, change(func(tx *Tx) error {
				last := tx.Get("seen")
				c.do(tx)
				before = strings.Join(heard.told, ", ")
				var records []string
				tx.Scan(history.Prefix, string(last), func(key string, value []byte) bool {
					r := history.Decode(value)
					records, last = append(records, r.Change+" "+r.Path), []byte(key)
					return true
				})
				after = strings.Join(records, ", ")
				tx.Set("seen", last)
				return end
			}), end, c.name)
			assert.Equal(t, after, c.records, c.name, "in the history")
			told := strings.Join(heard.told, ", ")
			if end == nil {
				assert.Equal(t, told, c.told, c.name)
				v := at.Lock()
				for _, dir := range []table.Ino{table.Root, d} {
					if n := v.Inode(dir); n != nil {
						assert.Equal(t, n.Mtime == side.Stamp(), dir == c.changed, c.name, "changed", dir)
					}
				}
				at.Unlock()
			} else {
				assert.Equal(t, told, before, c.name, "told of what is undone")
			}
		}
	}
	assert.OK(t, at.View(func(v *tree.View) error {
		rec := v.Record(name("out"))
		assert.True(t, rec.Ino == other && rec.Local && rec.Seq == 0, "what is excluded", rec)
		assert.True(t, v.Record(name("f")).Ino == 0 && v.Record(name("d")).Ino == 0, "it is there still")
		assert.True(t, v.Inode(f) == nil && v.Inode(d) == nil, "what has no name is there still")
		return nil
	}))
}
