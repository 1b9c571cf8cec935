package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// world is a working copy, the store behind it, and the faults between them.
type world struct {
	*testing.T
	v      *Volume
	p      *memory.Provider
	faults *providertest.Faults
	state  string
}

// newWorld opens a working copy; change may replace options and put things
// into the store first.
func newWorld(t *testing.T, change ...func(*world, *Options)) *world {
	t.Helper()
	w := &world{T: t, p: memory.New(memory.Options{PageSize: 3}), faults: providertest.NewFaults(t), state: t.TempDir()}
	o := Options{StateDir: w.state, Provider: "memory", Patience: 20 * time.Second}
	for _, c := range change {
		c(w, &o)
	}
	v, err := Open(context.Background(), w.faults.Wrap(w.p), o)
	if err != nil {
		t.Fatal(err)
	}
	w.v = v
	v.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() } // retries come at once
	t.Cleanup(func() { v.Close() })
	return w
}

// holding puts files into the store before the working copy opens.
func holding(files ...string) func(*world, *Options) {
	return func(w *world, _ *Options) {
		for i := 0; i < len(files); i += 2 {
			w.tamper(files[i], files[i+1])
		}
	}
}

func impatient(_ *world, o *Options) { o.Patience = 50 * time.Millisecond }

// patient undoes impatient, for what must work however busy the machine is.
// Nothing may be waiting.
func (w *world) patient() { w.v.o.Patience = 20 * time.Second }

func at(path string) providers.Locator { return providers.MustLocator(path) }

// tamper is another writer.
func (w *world) tamper(path, content string) {
	w.Helper()
	w.ok(w.p.Tamper(at(path), []byte(content)))
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("got error %v, want %v", err, want)
	}
}

var me = &fs.Op{UID: 7, GID: 8, Umask: 0o022}

// walk gives the inode of a path, 0 when there is none.
func (w *world) walk(path string) fs.Ino {
	w.Helper()
	ino := fs.RootIno
	for _, name := range at(path).Parts() {
		e, err := w.v.Lookup(me, ino, name)
		w.ok(err)
		if e.Ino == 0 {
			return 0
		}
		ino = e.Ino
	}
	return ino
}

func (w *world) dirOf(path string) (fs.Ino, string) {
	w.Helper()
	return w.walk(at(path).Parent().String()), at(path).Name()
}

func (w *world) open(path string, flags uint32) fs.Opened {
	w.Helper()
	o, err := w.v.Open(me, w.walk(path), flags)
	w.ok(err)
	return o
}

// create makes and opens a file.
func (w *world) create(path string) fs.Opened {
	w.Helper()
	dir, name := w.dirOf(path)
	_, o, err := w.v.Create(me, dir, name, syscall.O_RDWR, 0o666)
	w.ok(err)
	return o
}

func (w *world) write(o fs.Opened, content string, off int64) {
	w.Helper()
	n, err := o.File.Write(me, []byte(content), off)
	if w.ok(err); n != len(content) {
		w.Fatalf("wrote %d bytes of %d", n, len(content))
	}
}

// shut is close(2) of the last descriptor.
func (w *world) shut(o fs.Opened) error {
	w.Helper()
	err := o.File.Flush(me)
	o.File.Release()
	return err
}

// put is open with O_CREAT|O_TRUNC, write, close.
func (w *world) put(path, content string) error {
	w.Helper()
	dir, name := w.dirOf(path)
	_, o, err := w.v.Create(me, dir, name, syscall.O_RDWR|syscall.O_TRUNC, 0o666)
	w.ok(err)
	w.write(o, content, 0)
	return w.shut(o)
}

func (w *world) read(o fs.Opened) string {
	w.Helper()
	buf := make([]byte, 1<<16)
	d, err := o.File.Read(me, buf, 0)
	w.ok(err)
	return string(d.Bytes)
}

// get is the content of a path as a program sees it.
func (w *world) get(path string) string {
	w.Helper()
	o := w.open(path, syscall.O_RDONLY)
	defer o.File.Release()
	return w.read(o)
}

func (w *world) rename(from, to string) error {
	w.Helper()
	dir, name := w.dirOf(from)
	newDir, newName := w.dirOf(to)
	return w.v.Rename(me, dir, name, newDir, newName, 0)
}

func (w *world) unlink(path string) error {
	w.Helper()
	dir, name := w.dirOf(path)
	return w.v.Unlink(me, dir, name)
}

func (w *world) mkdir(path string) {
	w.Helper()
	dir, name := w.dirOf(path)
	_, err := w.v.Mkdir(me, dir, name, 0o777)
	w.ok(err)
}

// settle waits until the backend has all changes of names.
func (w *world) settle() {
	w.Helper()
	w.ok(w.v.settled(me))
}

// backend is what the store has now.
func (w *world) backend(want ...string) {
	w.Helper()
	got := listBackend(w.p)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.Fatalf("the backend has\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func (w *world) noProblems() {
	w.Helper()
	for _, p := range w.v.Status().Problems {
		w.Errorf("problem: %s %s: %v", p.Op, p.Path, p.Err)
	}
}

// listBackend gives "dir/", "link -> target" and "file: content" lines.
func listBackend(p providers.Provider) []string {
	var lines []string
	ctx := context.Background()
	for info, err := range providers.All(ctx, p, providers.Locator{}, providers.ListOptions{Recursive: true}) {
		if err != nil {
			return append(lines, err.Error())
		}
		if info.Kind == providers.KindDir {
			lines = append(lines, info.Locator.String()+"/")
			continue
		}
		c, err := p.Read(ctx, info.Locator, providers.ReadOptions{})
		if err != nil {
			return append(lines, err.Error())
		}
		data, _ := io.ReadAll(c.Body)
		format := "%s: %s"
		if info.Kind == providers.KindSymlink {
			format = "%s -> %s"
		}
		lines = append(lines, fmt.Sprintf(format, info.Locator, data))
	}
	return lines
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
