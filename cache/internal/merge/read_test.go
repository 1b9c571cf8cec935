package merge

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

const (
	tooLarge  = 256 << 20 // for the memory
	mostPiece = 1 << 20   // of content that is read at once
)

// large is a remote that has zeros in some files, which it makes as they are read.
type large struct {
	providers.Provider
	t     *testing.T
	files map[providers.Locator]providers.Info
}

func (l *large) Read(ctx context.Context, at providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	info, ok := l.files[at]
	if !ok {
		return l.Provider.Read(ctx, at, o)
	}
	return providers.Content{Info: info, Body: io.NopCloser(io.LimitReader(zeros{l.t}, o.Span(info.Size)))}, nil
}

// zeros are read in small pieces.
type zeros struct{ t *testing.T }

func (z zeros) Read(b []byte) (int, error) {
	assert.Must(z.t, len(b) <= mostPiece, "bytes of content in memory", len(b))
	clear(b)
	return len(b), nil
}

// largeFiles has the remote have such files, and a merge take them.
func (c *copied) largeFiles(size int64, names ...string) {
	c.Helper()
	l, ok := c.o.Provider.(*large)
	if !ok {
		l = &large{c.o.Provider, c.T, map[providers.Locator]providers.Info{}}
		c.o.Provider = l
	}
	m := c.New(c.Context(), l)
	c.ok(m.Run(func(tx *Tx) error {
		for _, name := range names {
			info := providers.Info{Locator: at(name), Kind: providers.KindFile, Size: size, Version: providers.Version{ETag: "large " + name, Size: size}}
			l.files[info.Locator] = info
			m.Take(tx, News{Link: table.Link{Dir: table.Root, Name: name}, Info: &info})
		}
		return nil
	}))
}

// Content of any size is compared, and read as a side of a conflict, a piece at a time, wherever it
// is.
func TestLargeContent(t *testing.T) {
	for _, size := range []int64{compareBytes, tooLarge} {
		w := newCopy(t, memory.Options{NoDigest: true}, reconcile.Manual, "f", "one")
		w.largeFiles(size, "g")
		w.ours("mv g f")
		w.largeFiles(size, "f")
		if size == compareBytes {
			assert.Equal(t, len(w.Held().Conflicts()), 0, "conflicts about the same content")
			continue
		}
		for _, s := range []Side{SideOurs, SideTheirs} {
			r := assert.Of(w.Held().ConflictContent(t.Context(), "f", s)).OK(t)
			assert.Equal(t, assert.Of(io.Copy(io.Discard, r)).OK(t), size, "bytes of", s)
			w.ok(r.Close())
		}
	}

	w := newText(t, memory.Options{}, reconcile.Split, "one", "ours")
	copyOf := "f.conflict-" + short("ours")
	w.largeFiles(tooLarge, copyOf)
	w.theirs("put f theirs")
	info := w.info("f")
	m := w.New(t.Context(), w.o.Provider)
	w.ok(m.Run(func(tx *Tx) error {
		m.Take(tx, News{Link: table.Link{Dir: table.Root, Name: "f"}, Info: &info})
		return nil
	}))
	assert.Equal(t, len(w.linesBelow("", table.Root, false)), 3, "what the large file is not the copy of", w.linesBelow("", table.Root, false))
}

// So is content that is local.
func TestLargeLocalContent(t *testing.T) {
	w := newText(t, memory.Options{}, reconcile.Manual, "one", "ours")
	_, x := w.find("f")
	f := assert.Of(w.o.Store.Open(x)).OK(t)
	w.ok(f.Truncate(t.Context(), tooLarge))
	f.Release()
	w.theirs("put f theirs")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.pull()
	r := assert.Of(w.Held().ConflictContent(t.Context(), "f", SideOurs)).OK(t)
	assert.Equal(t, assert.Of(io.Copy(io.Discard, r)).OK(t), tooLarge, "bytes of ours")
	w.ok(r.Close())
	runtime.ReadMemStats(&after)
	assert.True(t, after.TotalAlloc-before.TotalAlloc < tooLarge/10, "bytes in memory", after.TotalAlloc-before.TotalAlloc)
}

// cutShort has the next read of content at the remote break off: with an error, or, where that is
// nil, as if it were all.
func (c *copied) cutShort(err error) {
	c.calls = func(call *providers.Call) error {
		if call.Method == providers.MethodRead {
			call.Body = func(r io.Reader) io.Reader {
				r = io.LimitReader(r, 2)
				if err != nil {
					r = io.MultiReader(r, iotest.ErrReader(err))
				}
				return r
			}
			c.calls = func(*providers.Call) error { return nil }
		}
		return nil
	}
}

// A read of content that breaks off begins anew: a part is never taken for the whole, nor compared
// together with the whole.
func TestReadAnew(t *testing.T) {
	for _, cause := range []error{nil, providers.ErrUnavailable} {
		for what, c := range map[string]struct {
			o    memory.Options
			ours string
		}{
			"of theirs": {memory.Options{NoDigest: true}, "put f same"},
			"of ours":   {memory.Options{}, "mv g f"},
		} {
			t.Run(fmt.Sprint(what, cause), func(t *testing.T) {
				w := newCopy(t, c.o, reconcile.Split, "f", "one", "g", "same")
				var failed []error
				w.o.Volume.Retry = func(ctx context.Context, do func(context.Context) error) error {
					err := do(ctx)
					if err != nil {
						failed = append(failed, err)
						err = do(ctx)
					}
					return err
				}
				w.ours(c.ours)
				w.theirs("put f same")
				w.cutShort(cause)
				assert.Equal(t, len(w.pull().Conflicts), 0, "conflicts")
				assert.Equal(t, len(failed), 1, "reads that broke off", failed)
				assert.Contains(t, strings.Join(w.lines(), ", "), "f: same")
				assert.Equal(t, w.conflictCopies(), 0, "conflict copies")
			})
		}
	}
}

// A side of a conflict that breaks off is not taken for the whole.
func TestSideThatBreaksOff(t *testing.T) {
	w := newCopy(t, memory.Options{}, reconcile.Manual, "f", "one", "g", "ours")
	w.ours("mv g f")
	w.theirs("put f theirs")
	w.pull()
	for _, s := range []Side{SideOurs, SideTheirs} {
		w.cutShort(nil)
		r := assert.Of(w.Held().ConflictContent(t.Context(), "f", s)).OK(t)
		text, err := io.ReadAll(r)
		assert.Is(t, err, providers.ErrCorrupt, s, "reads as", string(text))
		w.ok(r.Close())
	}
}
