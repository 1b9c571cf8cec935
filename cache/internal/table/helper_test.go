package table

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/integration/assert"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// open opens a table.
func open(t testing.TB, dir string, o Options) *Table {
	t.Helper()
	o.Strict = true
	tab := assert.Of(Open(dir, o)).OK(t)
	return tab
}

// scratch is a table with a root, which is closed and checked in the end.
func scratch(t testing.TB) *Table {
	t.Helper()
	tab := open(t, "/t", Options{FS: vfs.NewMem()})
	directory(tab, 0, "")
	commit(t, tab)
	t.Cleanup(func() {
		assert.Is(t, tab.Check(), nil)
		assert.Is(t, tab.Close(), nil)
	})
	return tab
}

func commit(t testing.TB, tab *Table) {
	t.Helper()
	assert.OK(t, tab.Commit())
}

// directory adds a directory under a name; the root when parent is 0.
func directory(t *Table, parent Ino, name string) Ino {
	ino := Root
	if parent != 0 {
		ino = t.Alloc()
	}
	t.Put(ino, &Inode{Mode: syscall.S_IFDIR | 0o755, ContentVersion: 1, AttrGen: 1})
	if parent != 0 {
		t.SetName(parent, name, Name{Ino: ino})
	}
	return ino
}

// addFile adds a file under a name.
func addFile(t *Table, dir Ino, name string) Ino {
	ino := t.Alloc()
	t.Put(ino, &Inode{Mode: syscall.S_IFREG | 0o644})
	n, _ := t.Name(dir, name)
	n.Ino = ino
	t.SetName(dir, name, n)
	return ino
}

// hookFS asks before it does: op is "create", "write", "sync" or "allocate",
// and kind "log", "sst", "manifest", "dir" or "other".
type hookFS struct {
	vfs.FS
	hook func(op, kind string) error
}

func kindOf(name string) string {
	switch base := filepath.Base(name); {
	case strings.HasSuffix(base, ".log"), base == "spare":
		return "log"
	case strings.HasSuffix(base, ".sst"):
		return "sst"
	case strings.HasPrefix(base, "MANIFEST"):
		return "manifest"
	}
	return "other"
}

func (h *hookFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return h.make("create", name, func() (vfs.File, error) { return h.FS.Create(name, c) })
}

func (h *hookFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return h.make("create", name, func() (vfs.File, error) { return h.FS.ReuseForWrite(old, name, c) })
}

func (h *hookFS) OpenDir(name string) (vfs.File, error) {
	f, err := h.FS.OpenDir(name)
	return &hookFile{f, h, "dir"}, err
}

func (h *hookFS) make(op, name string, create func() (vfs.File, error)) (vfs.File, error) {
	if err := h.hook(op, kindOf(name)); err != nil {
		return nil, err
	}
	f, err := create()
	if err != nil {
		return nil, err
	}
	return &hookFile{f, h, kindOf(name)}, nil
}

type hookFile struct {
	vfs.File
	fs   *hookFS
	kind string
}

func (f *hookFile) Write(p []byte) (int, error) {
	if err := f.fs.hook("write", f.kind); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *hookFile) Sync() error {
	if err := f.fs.hook("sync", f.kind); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *hookFile) SyncData() error {
	if err := f.fs.hook("sync", f.kind); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *hookFile) Preallocate(offset, length int64) error {
	if err := f.fs.hook("allocate", f.kind); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}
