package fs

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/wsmount/wsmount/integration/assert"
)

// fakeVolume is a tree in memory that counts references and remembers which
// changes reached it.
type fakeVolume struct {
	readOnlyVolume
	mu      sync.Mutex
	nodes   map[Ino]*fakeNode
	refs    map[Ino]int64
	changed []string
}

type fakeNode struct {
	mode     uint32
	nlink    uint32
	children map[string]Ino
}

// newFake makes a volume of paths; one that ends in "/" is a directory.
func newFake(paths ...string) *fakeVolume {
	v := &fakeVolume{nodes: make(map[Ino]*fakeNode), refs: make(map[Ino]int64)}
	v.nodes[RootIno] = &fakeNode{mode: syscall.S_IFDIR | 0o755, nlink: 2, children: map[string]Ino{}}
	for _, p := range paths {
		v.make(p)
	}
	return v
}

func (v *fakeVolume) make(p string) Ino {
	dir, isDir := strings.HasSuffix(p, "/"), false
	at := RootIno
	names := strings.Split(strings.TrimSuffix(p, "/"), "/")
	for i, name := range names {
		isDir = dir || i < len(names)-1
		n := v.nodes[at]
		next, ok := n.children[name]
		if !ok {
			next = v.add(n, name, isDir)
		}
		at = next
	}
	return at
}

func (v *fakeVolume) add(parent *fakeNode, name string, isDir bool) Ino {
	ino := Ino(len(v.nodes) + 1)
	n := &fakeNode{mode: syscall.S_IFREG | 0o644, nlink: 1}
	if isDir {
		n = &fakeNode{mode: syscall.S_IFDIR | 0o755, nlink: 2, children: map[string]Ino{}}
	}
	v.nodes[ino] = n
	parent.children[name] = ino
	return ino
}

func (v *fakeVolume) attr(ino Ino) Attr {
	n := v.nodes[ino]
	return Attr{Ino: ino, Mode: n.mode, Nlink: n.nlink, TTL: time.Second}
}

func (v *fakeVolume) Lookup(_ *Op, dir Ino, name string) (Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ino := v.nodes[dir].children[name]
	if ino == 0 {
		return Entry{TTL: time.Second}, nil
	}
	v.refs[ino]++
	return Entry{Ino: ino, Attr: v.attr(ino), TTL: time.Second}, nil
}

func (v *fakeVolume) Forget(ino Ino, n uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refs[ino] -= int64(n)
}

func (v *fakeVolume) Attr(_ *Op, ino Ino, _ File) (Attr, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.attr(ino), nil
}

func (v *fakeVolume) OpenDir(_ *Op, ino Ino) (Dir, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	entries := dots(ino)
	for _, name := range sortedKeys(v.nodes[ino].children) {
		c := v.nodes[ino].children[name]
		entries = append(entries, DirEntry{Name: name, Ino: c, Mode: v.nodes[c].mode & syscall.S_IFMT})
	}
	return &listDir{entries: entries}, nil
}

func (v *fakeVolume) note(what string) { v.changed = append(v.changed, what) }

func (v *fakeVolume) Mkdir(_ *Op, dir Ino, name string, _ uint32) (Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note("mkdir " + name)
	ino := v.add(v.nodes[dir], name, true)
	v.refs[ino]++
	return Entry{Ino: ino, Attr: v.attr(ino)}, nil
}

func (v *fakeVolume) Create(_ *Op, dir Ino, name string, _, _ uint32) (Entry, Opened, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note("create " + name)
	ino := v.add(v.nodes[dir], name, false)
	v.refs[ino]++
	return Entry{Ino: ino, Attr: v.attr(ino)}, Opened{File: &bytesFile{}}, nil
}

func (v *fakeVolume) Open(*Op, Ino, uint32) (Opened, error) {
	return Opened{File: &bytesFile{}}, nil
}

func (v *fakeVolume) SetAttr(_ *Op, ino Ino, _ File, _ *SetAttr) (Attr, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note("setattr")
	return v.attr(ino), nil
}

func (v *fakeVolume) Unlink(_ *Op, dir Ino, name string) error { return v.remove(dir, name) }
func (v *fakeVolume) Rmdir(_ *Op, dir Ino, name string) error  { return v.remove(dir, name) }

func (v *fakeVolume) remove(dir Ino, name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note("remove " + name)
	delete(v.nodes[dir].children, name)
	return nil
}

func (v *fakeVolume) Rename(_ *Op, dir Ino, name string, newDir Ino, newName string, _ uint32) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note("rename " + name + " " + newName)
	v.nodes[newDir].children[newName] = v.nodes[dir].children[name]
	delete(v.nodes[dir].children, name)
	return nil
}

func (v *fakeVolume) Link(_ *Op, ino, dir Ino, name string) (Entry, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note("link " + name)
	v.nodes[dir].children[name] = ino
	v.nodes[ino].nlink++
	v.refs[ino]++
	return Entry{Ino: ino, Attr: v.attr(ino)}, nil
}

// world is a front over parts, driven as the kernel drives it.
type world struct {
	t *testing.T
	*front
}

func newWorld(t *testing.T, parts ...Part) *world {
	t.Helper()
	o := Options{}
	o.setDefaults()
	tree, err := newTree(parts, o.ControlName, "/mnt")
	assert.OK(t, err)
	return &world{t, newFront(tree, &o)}
}

func header(node uint64) fuse.InHeader { return fuse.InHeader{NodeId: node} }

// walk looks a path up from the root; status is that of the first step that
// failed.
func (w *world) walk(path string) (fuse.EntryOut, fuse.Status) {
	out := fuse.EntryOut{NodeId: 1}
	if path == "" {
		return out, fuse.OK
	}
	for name := range strings.SplitSeq(path, "/") {
		h := header(out.NodeId)
		out = fuse.EntryOut{}
		if st := w.Lookup(nil, &h, name, &out); st != fuse.OK {
			return out, st
		}
		if out.NodeId == 0 {
			return out, fuse.ENOENT
		}
	}
	return out, fuse.OK
}

func (w *world) mustWalk(path string) fuse.EntryOut {
	w.t.Helper()
	out, st := w.walk(path)
	assert.Must(w.t, st == fuse.OK, "lookup", path, st)
	return out
}

// list reads a directory in requests of the given size.
func (w *world) list(path string, size int, plus bool) []string {
	w.t.Helper()
	dir := w.mustWalk(path)
	var open fuse.OpenOut
	st := w.OpenDir(nil, &fuse.OpenIn{InHeader: header(dir.NodeId)}, &open)
	assert.Must(w.t, st == fuse.OK, "opendir", path, st)
	defer w.ReleaseDir(&fuse.ReleaseIn{InHeader: header(dir.NodeId), Fh: open.Fh})
	var names []string
	off := uint64(0)
	for {
		out := fuse.NewDirEntryList(make([]byte, size), off)
		in := &fuse.ReadIn{InHeader: header(dir.NodeId), Fh: open.Fh, Offset: off}
		read, parse := w.ReadDir, fuse.ParseDirEntries
		if plus {
			read = w.ReadDirPlus
			parse = func(b []byte) ([]fuse.DirEntry, error) {
				e, _, err := fuse.ParseDirLookupEntries(b)
				return e, err
			}
		}
		st := read(nil, in, out)
		assert.Must(w.t, st == fuse.OK, "readdir", path, st)
		entries, err := parse(out.Bytes())
		assert.OK(w.t, err)
		if len(entries) == 0 {
			slices.Sort(names)
			return names
		}
		for _, e := range entries {
			if e.Name != "." && e.Name != ".." {
				names = append(names, e.Name)
			}
			off = e.Off
		}
	}
}
