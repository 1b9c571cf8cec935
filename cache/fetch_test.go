package cache

import (
	"context"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// calls records what a store is asked.
type calls struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (c *calls) hook(_ context.Context, m providers.Method, l providers.Locator) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, string(m)+" "+l.String())
	return nil
}

// of counts the calls of a method and forgets all.
func (c *calls) of(m providers.Method) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, call := range c.list {
		if strings.HasPrefix(call, string(m)+" ") {
			n++
		}
	}
	c.list = nil
	return n
}

// changes are the calls that change something, in order, and forgets all.
func (c *calls) changes() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, call := range c.list {
		m, _, _ := strings.Cut(call, " ")
		if providers.Method(m).Mutates() {
			all = append(all, call)
		}
	}
	c.list = nil
	return strings.Join(all, ", ")
}

func recording(c *calls) func(*world, *Options) {
	return func(w *world, _ *Options) { w.p = memory.New(memory.Options{PageSize: 3, Hook: c.hook}) }
}

// However many open a file, it is fetched once, and only when it is opened.
func TestFetchOnce(t *testing.T) {
	var c calls
	w := newWorld(t, recording(&c), holding("d/f", "hello"))
	ino := w.walk("d/f")
	if n := c.of(providers.MethodRead); n != 0 {
		t.Fatalf("looking a name up read content %d times", n)
	}
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodRead, providertest.Fault{Gate: gate, Reached: reached})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			o, err := w.v.Open(me, ino, syscall.O_RDONLY)
			if err != nil {
				t.Error(err)
				return
			}
			defer o.File.Release()
			if d, _ := o.File.Read(me, make([]byte, 10), 0); string(d.Bytes) != "hello" {
				t.Errorf("got %q", d.Bytes)
			}
		})
	}
	<-reached
	close(gate)
	all.Wait()
	w.get("d/f")
	if n := c.of(providers.MethodRead); n != 1 {
		t.Errorf("fetched %d times", n)
	}
}

// What will be cut off is not fetched.
func TestTruncationFetchesNothing(t *testing.T) {
	var c calls
	w := newWorld(t, recording(&c), holding("f", "hello", "g", "world"))
	o := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
	w.write(o, "new", 0)
	w.ok(w.shut(o))
	zero := uint64(0)
	_, err := w.v.SetAttr(me, w.walk("g"), nil, &fs.SetAttr{Size: &zero})
	w.ok(err)
	w.settle()
	if n := c.of(providers.MethodRead); n != 0 {
		t.Errorf("%d reads", n)
	}
	w.backend("f: new", "g: ")
}

// Content that breaks off is never shown: the range is read again.
func TestBrokenReadIsRepeated(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", fetchRange/16) + "the end"
	w := newWorld(t, holding("f", big))
	w.faults.Queue(providers.MethodRead,
		providertest.Fault{Cut: io.ErrUnexpectedEOF, CutAfter: 1000},
		providertest.Fault{Cut: io.EOF, CutAfter: 2000},
		providertest.Fault{Before: providers.ErrUnavailable},
		providertest.Fault{},
		providertest.Fault{Cut: io.ErrUnexpectedEOF, CutAfter: 3})
	o := w.open("f", syscall.O_RDONLY)
	defer o.File.Release()
	got := make([]byte, len(big)+1)
	d, err := o.File.Read(me, got, 0)
	w.ok(err)
	if string(d.Bytes) != big {
		t.Errorf("%d bytes that differ from the %d stored", len(d.Bytes), len(big))
	}
}

// flipped delivers one wrong byte.
type flipped struct{ *memory.Provider }

func (p flipped) Read(ctx context.Context, l providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	c, err := p.Provider.Read(ctx, l, o)
	if err == nil {
		c.Body = io.NopCloser(strings.NewReader("jello"))
	}
	return c, err
}

// Wrong bytes of the right length are found by the backend's own hash.
func TestWrongBytesAreRefused(t *testing.T) {
	p := flipped{memory.New(memory.Options{})}
	if err := p.Tamper(at("f"), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	v, err := Open(context.Background(), p, Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	w := &world{T: t, v: v}
	_, err = v.Open(me, w.walk("f"), syscall.O_RDONLY)
	w.is(err, providers.ErrCorrupt)
	if got := fs.Errno(err); got != syscall.EIO {
		t.Errorf("errno %v", got)
	}
}

// A version that is gone fails the open once; the name leads to the new one,
// and who has the old one open keeps it.
func TestVersionMovedOn(t *testing.T) {
	w := newWorld(t, holding("f", "one", "g", "two"))
	old, gone := w.walk("f"), w.walk("g")
	w.tamper("f", "three!")
	w.ok(w.p.Tamper(at("g"), nil))
	_, err := w.v.Open(me, old, syscall.O_RDONLY)
	w.is(err, fs.ErrStale)
	if now := w.walk("f"); now == old || now == 0 {
		t.Errorf("the name leads to inode %d as before", now)
	}
	if got := w.get("f"); got != "three!" {
		t.Errorf("got %q", got)
	}
	_, err = w.v.Open(me, gone, syscall.O_RDONLY)
	w.is(err, fs.ErrStale)
	if now := w.walk("g"); now != 0 {
		t.Errorf("the name leads to inode %d", now)
	}
	o := w.open("f", syscall.O_RDONLY)
	defer o.File.Release()
	w.tamper("f", "four")
	if got := w.read(o); got != "three!" {
		t.Errorf("the open file has %q", got)
	}
}

// A backend that does not answer makes an open fail, not hang.
func TestFetchGivesUp(t *testing.T) {
	w := newWorld(t, holding("f", "x"), impatient)
	w.faults.Queue(providers.MethodRead, providertest.Fault{Gate: make(chan struct{})})
	_, err := w.v.Open(me, w.walk("f"), syscall.O_RDONLY)
	w.is(err, fs.ErrUnavailable)
	w.patient()
	if got := w.get("f"); got != "x" {
		t.Errorf("afterwards: %q", got)
	}
}

// A listing is taken whole or not at all, page after page.
func TestListing(t *testing.T) {
	w := newWorld(t, holding("a", "1", "b", "2", "c", "3", "d", "4", "e/f", "5"))
	w.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Before: providers.ErrPermission})
	_, err := w.v.Lookup(me, fs.RootIno, "a")
	w.is(err, providers.ErrPermission)
	if got := strings.Join(w.list(""), " "); got != ". .. a b c d e" {
		t.Errorf("listed %q", got)
	}
	if e, err := w.v.Lookup(me, fs.RootIno, "none"); e.Ino != 0 || err != nil || e.TTL == 0 {
		t.Errorf("a missing name is %+v, %v", e, err)
	}
}

// list reads a directory to its end.
func (w *world) list(path string) []string {
	w.Helper()
	d, err := w.v.OpenDir(me, w.walk(path))
	w.ok(err)
	defer d.Release()
	var names []string
	for {
		e, more, err := d.Next(me)
		if w.ok(err); !more {
			return names
		}
		names = append(names, e.Name)
	}
}

// What the kernel may do with an open file.
func TestOpened(t *testing.T) {
	w := newWorld(t, holding("f", "hello"))
	first := w.open("f", syscall.O_RDONLY)
	if first.KeepCache || !first.PassRead || first.PassWrite || !first.NoFlush || first.Backing <= 0 {
		t.Errorf("first open: %+v", first)
	}
	again := w.open("f", syscall.O_RDONLY)
	if !again.KeepCache || again.Backing != first.Backing {
		t.Errorf("second open: %+v", again)
	}
	writer := w.open("f", syscall.O_RDWR)
	if !writer.KeepCache || writer.PassRead || writer.PassWrite || writer.NoFlush {
		t.Errorf("writer: %+v", writer)
	}
	w.write(writer, "j", 0)
	dirty := w.open("f", syscall.O_RDONLY)
	if dirty.KeepCache || dirty.PassRead {
		t.Errorf("reader of unsaved content: %+v", dirty)
	}
	w.ok(w.shut(writer))
	clean := w.open("f", syscall.O_RDONLY)
	if !clean.KeepCache || !clean.PassRead || w.read(clean) != "jello" {
		t.Errorf("after the close: %+v", clean)
	}
	for _, o := range []fs.Opened{first, again, dirty, clean} {
		o.File.Release()
	}
}

// Stores through a mapping of the backing file are seen when the program
// closes.
func TestMappedStores(t *testing.T) {
	w := newWorld(t, holding("f", "hello"))
	reader := w.open("f", syscall.O_RDONLY)
	defer reader.File.Release()
	writer := w.open("f", syscall.O_RDWR)
	m, err := syscall.Mmap(reader.Backing, 0, 5, syscall.PROT_WRITE, syscall.MAP_SHARED)
	w.ok(err)
	m[0] = 'j'
	w.ok(syscall.Munmap(m))
	w.ok(w.shut(writer))
	w.backend("f: jello")
}
