package direct

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"golang.org/x/sys/unix"
)

// op is a request of the process itself, with umask 022.
func op() *wsfs.Op { return opAs(uint32(os.Geteuid()), uint32(os.Getegid())) }

func opAs(uid, gid uint32) *wsfs.Op {
	return &wsfs.Op{UID: uid, GID: gid, Umask: 0o022}
}

// serve opens a volume of a new directory. At the end of the test no descriptor
// may be left.
func serve(t testing.TB, o Options) (*Volume, string) {
	t.Helper()
	dir := t.TempDir()
	return serveDir(t, dir, o), dir
}

func serveDir(t testing.TB, dir string, o Options) *Volume {
	t.Helper()
	v, err := Open(context.Background(), dir, o)
	assert.OK(t, err)
	t.Cleanup(func() {
		v.Close()
		waitFor(t, "descriptors to be closed", func() bool { return v.fds.open.Load() == 0 })
	})
	if s := v.Status(); o.Watch && o.tune.refuseWatch == nil && s.Watch == "exhausted" {
		t.Fatalf("user %d of this machine, with whatever else runs as him, has no inotify left for the test: %s", os.Getuid(), s.WatchWhy)
	}
	return v
}

// waitFor waits for something that another goroutine will do.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	assert.Eventually(t, what, ok)
}

func must[T any](t testing.TB) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		assert.OK(t, err)
		return x
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	assert.OK(t, err)
}

func wantErr(t testing.TB, err error, want syscall.Errno) {
	t.Helper()
	assert.Is(t, err, want)
}

// lookup finds a name that must be there.
func lookup(t testing.TB, v *Volume, dir wsfs.Ino, name string) wsfs.Entry {
	t.Helper()
	e, err := v.Lookup(op(), dir, name)
	assert.Must(t, err == nil && e.Ino != 0, "lookup", name, e.Ino, err)
	return e
}

// create makes a file with content and closes it.
func create(t testing.TB, v *Volume, dir wsfs.Ino, name, content string) wsfs.Entry {
	t.Helper()
	e, o, err := v.Create(op(), dir, name, unix.O_RDWR|unix.O_EXCL, 0o666)
	ok(t, err)
	if content != "" {
		n, err := o.File.Write(op(), []byte(content), 0)
		assert.Must(t, n == len(content) && err == nil, "write:", n, err)
	}
	o.File.Release()
	return e
}

func read(t testing.TB, f wsfs.File) string {
	t.Helper()
	d, err := f.Read(op(), make([]byte, 4096), 0)
	ok(t, err)
	return string(d.Bytes)
}

func attr(t testing.TB, v *Volume, ino wsfs.Ino) wsfs.Attr {
	t.Helper()
	a, err := v.Attr(op(), ino, nil)
	ok(t, err)
	return a
}

func writeFile(t testing.TB, content string, elem ...string) {
	t.Helper()
	ok(t, os.WriteFile(filepath.Join(elem...), []byte(content), 0o644))
}

func needRoot(t testing.TB) { tier.RequireRoot(t) }

func ptr[T any](x T) *T { return &x }

// A recorder is the kernel's and the bus's end of a volume.
type recorder struct {
	mu   sync.Mutex
	got  map[note]int
	seen map[string]func() bool // of the names that appeared
}

type note struct {
	kind string // "entry", "attr", "content", "wrote", "deleted"
	ino  wsfs.Ino
	name string
}

func record(v *Volume) *recorder {
	r := &recorder{got: map[note]int{}, seen: map[string]func() bool{}}
	v.Bind(r)
	return r
}

func (r *recorder) add(n note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[n]++
}

func (r *recorder) Failed(path string, _ error)          { r.add(note{"failed", 0, path}) }
func (r *recorder) EntryChanged(d wsfs.Ino, name string) { r.add(note{"entry", d, name}) }
func (r *recorder) EntryAppeared(d wsfs.Ino, name string, seen func() bool) {
	r.EntryChanged(d, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[name] = seen
}
func (r *recorder) AttrChanged(i wsfs.Ino)    { r.add(note{kind: "attr", ino: i}) }
func (r *recorder) ContentChanged(i wsfs.Ino) { r.add(note{kind: "content", ino: i}) }
func (r *recorder) Wrote(path string)         { r.add(note{kind: "wrote", name: path}) }
func (r *recorder) Deleted(path string)       { r.add(note{kind: "deleted", name: path}) }

func (r *recorder) count(n note) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[n]
}

func (r *recorder) all() map[note]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := map[note]int{}
	for k, n := range r.got {
		c[k] = n
	}
	return c
}

func (r *recorder) wait(t testing.TB, want ...note) {
	t.Helper()
	for _, n := range want {
		waitFor(t, n.kind+" "+n.name, func() bool { return r.count(n) > 0 })
	}
}
