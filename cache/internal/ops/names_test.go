package ops

import (
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// world is a tree with the operations on it. What the remote is asked for is noted.
type world struct {
	*testing.T
	*Operations
	asked []string
	told  []string // names of which the kernel and the lifecycle bus are told
}

// notifier notes what it is told.
type notifier struct {
	fs.Notifier
	w *world
}

func (n notifier) EntryChanged(_ fs.Ino, name string) { n.w.told = append(n.w.told, "entry "+name) }
func (n notifier) Deleted(path string)                { n.w.told = append(n.w.told, "deleted "+path) }
func (n notifier) Wrote(path string)                  { n.w.told = append(n.w.told, "wrote "+path) }

var me = &fs.Op{UID: 1000, GID: 1000}

func newWorld(t *testing.T) *world {
	t.Helper()
	tab := assert.Of(table.Open(t.TempDir(), table.Options{})).OK(t)
	t.Cleanup(func() { tab.Close() })
	store := assert.Of(content.Open(t.TempDir(), content.Options{Ballast: -1, Floor: -1})).OK(t)
	t.Cleanup(func() { store.Close() })
	log, open := slog.New(slog.DiscardHandler), files.NewOpenSet()
	at := tree.New(tab, tree.Options{Pins: open})
	keeper := history.New(history.Options{Tree: at, Store: store, Open: open, Now: time.Now, Context: t.Context(), Log: log,
		Revision: func(*tree.View) (providers.Revision, bool) { return "", false }})
	w := &world{T: t}
	side := &local.Side{Border: &rules.Border{Ignores: rules.New("")}, Content: store, Now: time.Now, Log: log,
		Notifier: func() fs.Notifier { return notifier{w: w} }}
	w.Operations = New(Options{
		Tree: at, Side: side, Store: store, Open: open, Belief: &listing.Belief{Now: time.Now, Log: log},
		Capabilities: providers.Capabilities{AnyNames: true},
		Update: func(by files.Caller, do func(*local.Tx) error) error {
			return at.Update(func(tx *tree.Tx) error { return do(&local.Tx{Side: side, Tx: tx, Notes: keeper.In(tx, &by)}) }, nil)
		},
		Remote: Remote{Load: func(_ *fs.Op, dir table.Ino) error {
			w.asked = append(w.asked, fmt.Sprint("list ", dir))
			return at.Update(func(tx *tree.Tx) error {
				tx.Edit(dir).Loaded = true
				return nil
			}, nil)
		}},
	})
	assert.OK(t, at.Update(func(tx *tree.Tx) error {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
		return nil
	}, nil))
	return w
}

// mkdir makes directories, whose names are known, and gives the last.
func (w *world) mkdir(paths ...string) (ino fs.Ino) {
	w.Helper()
	for _, path := range paths {
		dir, name := fs.RootIno, path
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			dir, name = w.walk(path[:i]), path[i+1:]
		}
		ino = assert.Of(w.Mkdir(me, dir, name, 0o755)).OK(w).Ino
	}
	return ino
}

func (w *world) walk(path string) (ino fs.Ino) {
	w.Helper()
	ino = fs.RootIno
	for name := range strings.SplitSeq(path, "/") {
		ino = assert.Of(w.Lookup(me, ino, name)).OK(w).Ino
	}
	return ino
}

// A directory whose names are not known is listed before a name of it changes, and whether
// one is empty is not guessed.
func TestUnknownDirectories(t *testing.T) {
	for what, do := range map[string]func(w *world, d fs.Ino) error{
		"make in it":   func(w *world, d fs.Ino) error { return assert.ErrOf(w.Mkdir(me, d, "n", 0o755)) },
		"rename to it": func(w *world, d fs.Ino) error { return w.Rename(me, fs.RootIno, "other", d, "n", 0) },
		"remove it":    func(w *world, _ fs.Ino) error { return w.Rmdir(me, fs.RootIno, "d") },
		"replace it":   func(w *world, _ fs.Ino) error { return w.Rename(me, fs.RootIno, "other", fs.RootIno, "d", 0) },
	} {
		w := newWorld(t)
		w.mkdir("other")
		d := w.mkdir("d")
		assert.OK(t, w.o.Tree.Update(func(tx *tree.Tx) error {
			tx.Edit(table.Ino(d)).Loaded = false
			return nil
		}, nil))
		w.asked = nil
		assert.OK(t, do(w, d), what)
		assert.Slice(t, w.asked, []string{fmt.Sprint("list ", d)}, what)
	}
}

// What a rename may not do fails as on a disk, and changes nothing.
func TestRenameRefused(t *testing.T) {
	w := newWorld(t)
	w.mkdir("d", "d/e", "full", "full/x")
	assert.OK(t, assert.ErrOf(w.Symlink(me, fs.RootIno, "link", "to")))
	for _, c := range []struct {
		from, to string
		flags    uint32
		want     syscall.Errno
	}{
		{"none", "n", 0, syscall.ENOENT}, {"d", "none", 2, syscall.ENOENT}, {"d", "full", 1, syscall.EEXIST}, {"d", "full", 0, syscall.ENOTEMPTY},
		{"d", "link", 0, syscall.ENOTDIR}, {"link", "d", 0, syscall.EISDIR}, {"link", "n", 8, syscall.EINVAL}, {"link", "a/b", 0, syscall.EINVAL},
		{"link", strings.Repeat("n", providers.MaxName+1), 0, syscall.ENAMETOOLONG},
	} {
		assert.Is(t, w.Rename(me, fs.RootIno, c.from, fs.RootIno, c.to, c.flags), c.want, c.from, "to", c.to)
	}
	assert.Is(t, w.Rename(me, fs.RootIno, "d", w.walk("d/e"), "n", 0), syscall.EINVAL, "below itself")
	assert.Slice(t, w.told, nil, "told")
	assert.OK(t, w.Rename(me, fs.RootIno, "link", w.walk("d"), "n", 0))
	assert.Slice(t, w.told, []string{"deleted link"}, "told")
}

// A submodule stays as it is: what would change it or its place is refused at the call.
func TestSubmodulesAreNotChanged(t *testing.T) {
	w := newWorld(t)
	w.mkdir("top", "top/sub", "other")
	w.o.Remote.Submodule = func(_ *fs.Op, at providers.Locator) (providers.Locator, bool, error) {
		sub := providers.MustLocator("top/sub")
		return sub, at.Contains(sub), nil
	}
	root, top, sub := fs.RootIno, w.walk("top"), w.walk("top/sub")
	link := assert.Of(w.Symlink(me, root, "link", "to")).OK(t).Ino
	for what, err := range map[string]error{
		"mkdir in it":                         assert.ErrOf(w.Mkdir(me, sub, "new", 0o755)),
		"mknod in it":                         assert.ErrOf(w.Mknod(me, sub, "new", syscall.S_IFREG|0o644, 0)),
		"symlink in it":                       assert.ErrOf(w.Symlink(me, sub, "new", "to")),
		"link in it":                          assert.ErrOf(w.Link(me, link, sub, "new")),
		"rename into it":                      w.Rename(me, root, "link", sub, "new", 0),
		"rename of it":                        w.Rename(me, top, "sub", top, "new", 0),
		"rename of the directory above":       w.Rename(me, root, "top", root, "new", 0),
		"rename of another directory over it": w.Rename(me, root, "other", top, "sub", 0),
		"exchange":                            w.Rename(me, root, "other", top, "sub", 2),
		"rmdir":                               w.Rmdir(me, top, "sub"),
	} {
		assert.Is(t, err, syscall.EROFS, what)
		assert.Contains(t, err.Error(), "top/sub is a submodule", what, "the reason is not said:", err)
	}
	_, _, err := w.Create(me, sub, "new", syscall.O_WRONLY, 0o644)
	assert.Is(t, err, syscall.EROFS)
	w.mkdir("top/d")
	assert.OK(t, w.Rename(me, top, "d", root, "d", 0))
	assert.OK(t, w.Rmdir(me, root, "d"))
	assert.OK(t, w.Rename(me, root, "other", root, "moved", 0))
}
