package cache

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// part is how large the parts of these tests are: smaller than what they really
// are, as it costs a lot to have the race detector watch so many bytes, and larger than
// what account is kept of (see content).
const part = 1 << 20

// inParts has content of two parts and more go in parts.
func inParts(_ *world, o *Options) { o.part = part }

// large is content of two and a half parts.
func large() string {
	b := make([]byte, 2*part+part/2)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return string(b)
}

// Large content goes out in parts; one that breaks off is sent again, and alone.
func TestLargeContentInParts(t *testing.T) {
	t.Parallel()
	var parts atomic.Int64
	p := memory.New(memory.Options{Hook: func(_ context.Context, m providers.Method, _ providers.Locator) error {
		if m == providers.MethodPart {
			parts.Add(1)
		}
		return nil
	}})
	w := newWorld(t, inParts, func(w *world, _ *Options) { w.p = p })
	w.faults.Queue(providers.MethodPart, providertest.Fault{Before: providers.ErrUnavailable}, providertest.Fault{After: providers.ErrUnavailable})
	content := large()
	w.ok(w.put("f", content))
	w.arrived("f", content)
	assert.Equal(t, parts.Load(), 4, "parts arrived")
	assert.Equal(t, p.Uploads(), 0, "uploads are left")
}

// A file that is removed while it is sent is sent no further; one that is replaced is.
func TestRemovedWhileItIsSent(t *testing.T) {
	t.Parallel()
	const all, atOnce = 20, 16 // parts: of the file, and under way
	for what, c := range map[string]struct {
		do    func(w *world) error
		parts int64
	}{
		"removed":  {func(w *world) error { return w.unlink("f") }, atOnce},
		"replaced": {func(w *world) error { return w.rename("g", "f") }, all},
	} {
		t.Run(what, func(t *testing.T) {
			var sent atomic.Int64
			full, goOn := make(chan struct{}), make(chan struct{})
			w := newWorld(t, inParts, unwaited, holding("g", "small"))
			w.intercept(func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
				if c.Method == providers.MethodPart {
					if sent.Add(1) == atOnce {
						close(full)
					}
					<-goOn
				}
				return next(ctx)
			})
			w.ok(w.put("f", strings.Repeat("x", all*part)))
			committed := make(chan error, 1)
			go func() { committed <- w.sendAll() }()
			<-full
			w.ok(c.do(w))
			close(goOn)
			w.ok(<-committed)
			w.settle()
			assert.Equal(t, sent.Load(), c.parts, "parts sent")
			assert.Equal(t, w.p.Uploads(), 0, "uploads are left")
		})
	}
}

// What is lost to another writer frees its parts.
func TestLostPartsAreFreed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inParts, unwaited, holding("f", "base"))
	o := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
	w.write(o, large(), 0)
	w.tamper("f", "theirs")
	w.ok(w.shut(o))
	w.upload()
	assert.Equal(t, w.get("f"), "theirs", "the name")
	assert.Equal(t, len(w.list("")), 4, "names") // the conflict copy, and . and ..
	assert.Equal(t, w.p.Uploads(), 0, "uploads are left")
}

// An upload that a killed program left is freed after a day.
func TestPartsLeftByOthers(t *testing.T) {
	p := memory.New(memory.Options{})
	for i := range 2 {
		assert.OK(t, assert.ErrOf(p.StartParts(t.Context(), at(fmt.Sprint("f", i)), providers.WriteOptions{If: providers.IfAbsent()})))
	}
	w := newWorld(t, func(w *world, o *Options) {
		o.partsWait = time.Nanosecond
		w.p, o.Now = p, func() time.Time { return time.Now().Add(partsLeft + time.Hour) }
	})
	w.until(func() bool { return p.Uploads() == 0 })
}

// traffic counts what goes out in parts.
type traffic struct {
	sent, copies atomic.Int64
	refuses      error  // copies
	part         func() // called before a part goes
}

// metered opens a working copy whose traffic is counted, with small parts.
func metered(n *traffic) func(*world, *Options) {
	return func(w *world, o *Options) {
		inParts(w, o)
		w.wrap = around(n.around)
	}
}

func (n *traffic) around(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
	switch c.Method {
	case providers.MethodCopyPart:
		if n.refuses != nil {
			return providers.Fail("test", c.Method, c.Locator, n.refuses, nil)
		}
		n.copies.Add(1)
	case providers.MethodPart, providers.MethodWrite:
		if n.part != nil {
			n.part()
		}
		c.Body = func(r io.Reader) io.Reader { return io.TeeReader(r, n) }
	}
	return next(ctx)
}

// Write implements io.Writer.
func (n *traffic) Write(b []byte) (int, error) {
	n.sent.Add(int64(len(b)))
	return len(b), nil
}

// within runs what may send so many bytes at most, and at least one.
func (n *traffic) within(t *testing.T, most int64, do func()) {
	t.Helper()
	n.sent.Store(0)
	do()
	assert.AtLeast(t, n.sent.Load(), 1, "bytes sent")
	assert.AtMost(t, n.sent.Load(), most, "bytes sent")
}

// arrived compares what the backend has.
func (w *world) arrived(path, want string) {
	w.Helper()
	b, _, err := providers.Fetch(w.Context(), w.p, at(path), providers.ReadOptions{})
	w.ok(err)
	assert.Must(w, string(b) == want, "the backend has something else", len(b), "bytes of", len(want))
}

// amend opens a file, writes to it, and closes it.
func (w *world) amend(path, content string, off int64) {
	w.Helper()
	o := w.open(path, syscall.O_WRONLY)
	w.writeLast(o, content, off)
}

// Of large content goes only what has changed since the backend got it.
func TestOnlyChangesGo(t *testing.T) {
	t.Parallel()
	n := &traffic{}
	w := newWorld(t, metered(n))
	content := large()
	n.within(t, int64(len(content)), func() { w.ok(w.put("f", content)) })
	check := func(most int64, off int, put string) {
		t.Helper()
		n.within(t, most, func() { w.amend("f", put, int64(off)) })
		content = content[:min(off, len(content))] + put + content[min(off+len(put), len(content)):]
		w.arrived("f", content)
	}
	check(1024, len(content), string(make([]byte, 1024)))
	check(5, len(content), "grown")
	check(6, part+part/8, "middle")
	w.do("mv f g", "mv g f")
	w.settle()
	w.again()
	check(5, 3, "after") // the backend has what is here, after a start too
	n.within(t, 1, func() {
		o := w.open("f", syscall.O_WRONLY)
		w.cut(o, "f", int64(len(content)-1000))
		w.writeLast(o, "x", 0)
	})
	content = "x" + content[1:len(content)-1000]
	w.arrived("f", content)
	n.within(t, 3*part/8, func() {
		o := w.open("f", syscall.O_WRONLY)
		w.cut(o, "f", int64(len(content)-part/4))
		w.cut(o, "f", int64(len(content)))
		w.ok(w.shut(o))
	})
	w.arrived("f", content[:len(content)-part/4]+string(make([]byte, part/4)))
	w.noProblems()
}

// So it is when the backend has another version of the same content by the time that a
// file which is open for writing is closed.
func TestOnlyChangesGoToAnotherVersion(t *testing.T) {
	t.Parallel()
	for script, o := range map[string]memory.Options{
		"chmod f": {AttrsMoveETag: true},
		"mv f g":  {Without: providers.Capabilities{Abilities: providers.AbilityMove}},
	} {
		t.Run(script, func(t *testing.T) {
			n := &traffic{}
			w := newWorld(t, metered(n), func(w *world, _ *Options) { w.p = memory.New(o) })
			content := large()
			w.ok(w.put("f", content))
			file := w.open("f", syscall.O_WRONLY)
			w.do(script)
			w.settle()
			n.within(t, 5, func() { w.writeLast(file, "grown", int64(len(content))) })
			w.arrived(script[len(script)-1:], content+"grown")
		})
	}
}

// A change of what another has changed meanwhile is a conflict, as ever.
func TestChangesOfWhatIsGone(t *testing.T) {
	t.Parallel()
	n := &traffic{}
	w := newWorld(t, metered(n), unwaited)
	content := large()
	w.ok(w.put("f", content))
	w.upload()
	w.amend("f", "ours", 0)
	w.tamper("f", "theirs")
	w.upload()
	assert.Equal(t, w.get("f"), "theirs", "the name")
	for _, name := range w.list("") {
		if name != "." && name != ".." && name != "f" {
			w.arrived(name, "ours"+content[4:])
			return
		}
	}
	t.Error("ours is gone")
}

// A backend that does not copy parts gets them.
func TestChangesWithoutCopies(t *testing.T) {
	t.Parallel()
	n := &traffic{refuses: providers.ErrUnsupported}
	w := newWorld(t, metered(n))
	content := large()
	w.ok(w.put("f", content))
	n.within(t, int64(len(content)), func() { w.amend("f", "ours", 0) })
	w.arrived("f", "ours"+content[4:])
}

// Who has mapped the content file changes it without our seeing where.
func TestChangesOfAMapping(t *testing.T) {
	t.Parallel()
	n := &traffic{}
	w := newWorld(t, metered(n))
	content := large()
	w.ok(w.put("f", content))
	reader := w.open("f", syscall.O_RDONLY)
	fd := assert.Of(unix.Open(fmt.Sprint("/proc/self/fd/", reader.Backing), unix.O_RDWR, 0)).OK(w)
	writer := w.open("f", syscall.O_RDWR)
	w.ok(assert.ErrOf(unix.Pwrite(fd, []byte("mapped"), 1000)))
	w.ok(unix.Close(fd))
	w.writeLast(writer, "x", 0)
	reader.File.Release()
	w.arrived("f", "x"+content[1:1000]+"mapped"+content[1006:])
}

// Whatever programs do to large content, the backend has it in the end.
func TestChangesAtRandom(t *testing.T) {
	t.Parallel()
	n := &traffic{}
	w := newWorld(t, metered(n), unwaited)
	want := []byte(large())
	w.ok(w.put("f", string(want)))
	r := rand.New(rand.NewPCG(tier.Seed(t), 4))
	o := w.open("f", syscall.O_RDWR)
	for range tier.Pick(30, 600) {
		switch size := int64(len(want)); r.IntN(8) {
		case 0:
			for range 2 {
				size = 2*part + r.Int64N(2*part)
				w.cut(o, "f", size)
				want = append(want, make([]byte, max(size-int64(len(want)), 0))...)[:size]
			}
		case 1:
			w.ok(o.File.Allocate(me, r.Int64N(size), 1+r.Int64N(part/8), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE))
			want = w.whole(o, size)
		case 2:
			w.ok(w.shut(o))
			o = w.open("f", syscall.O_RDWR)
		case 3, 4:
			w.ok(o.File.Flush(me))
			w.upload()
			w.arrived("f", string(want))
		default:
			off := r.Int64N(size)
			put := large()[:1+r.Int64N(min(part/8, size-off))]
			w.write(o, put, off)
			copy(want[off:], put)
		}
	}
	w.ok(w.shut(o))
	w.upload()
	w.arrived("f", string(want))
	assert.False(t, n.copies.Load() == 0, "nothing was spared")
}

// whole reads a file of a size.
func (w *world) whole(o fs.Opened, size int64) []byte {
	w.Helper()
	buf := make([]byte, size)
	d := assert.Of(o.File.Read(me, buf, 0)).OK(w)
	assert.Must(w, int64(len(d.Bytes)) == size, len(d.Bytes), "bytes of", size)
	return d.Bytes
}

// cut is ftruncate(2).
func (w *world) cut(o fs.Opened, path string, size int64) {
	w.Helper()
	n := uint64(size)
	w.ok(assert.ErrOf(w.v.SetAttr(me, w.walk(path), o.File, &fs.SetAttr{Size: &n})))
}
