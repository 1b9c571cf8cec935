package bucket

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// segmentsOf are the keys of segments in a bucket.
func segmentsOf(f *fake) []string {
	return slices.DeleteFunc(f.keys(), func(key string) bool { return !strings.HasPrefix(key, "pre/"+segmentsAt) })
}

// TestDamagedSegments are told to the log and to nobody else, and stay.
func TestDamagedSegments(t *testing.T) {
	good := encodeSegment([]keyedRecord{{1, record{at: 5}}, {2, record{at: 6, mtime: 8}}})
	flipped := bytes.Clone(good)
	flipped[len(flipped)-6] ^= 1
	for name, content := range map[string]string{
		"empty": "", "short": string(good[:len(good)-3]), "shorter": segmentHead, "flipped": string(flipped), "trailing": string(good) + "x",
		"foreign": "hello\nworld\n", "newer": strings.Replace(string(good), "hints 3", "hints 4", 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("pre/a", "x", s3fs(0o100755))
			bad := "pre/" + segmentsAt + "0-bad"
			f.put(bad, content, nil)
			f.put("pre/"+segmentsAt+"1-good", string(good), nil)
			out := &lockedBuffer{}
			q := openFake(t, f, &Options{Prefix: "pre/", Logger: slog.New(slog.NewTextHandler(out, nil))})
			got := listed(t, q, "", true)
			assert.True(t, len(got) == 1 && got["a"].Attr.Mode == 0o755, "listed", got)
			assert.True(t, strings.Contains(out.String(), "a segment of the attribute index is ignored") && strings.Contains(out.String(), bad), "log:", out)
			assert.Equal(t, len(q.index.known), 3, "records are known")
			q.index.io.Lock()
			err := segmentIndex{q.index}.compact(t.Context())
			q.index.io.Unlock()
			keys := segmentsOf(f)
			assert.True(t, err == nil && len(keys) == 2 && keys[0] == bad, "left", keys, err)
		})
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Two mounts that write, and make one segment of many, at the same time lose no record.
func TestIndexOfTwo(t *testing.T) {
	f := newFake()
	const rounds = 3 * segmentMany
	var wg sync.WaitGroup
	for who := range 2 {
		p := openFake(t, f, nil)
		wg.Go(func() {
			for i := range rounds {
				mustWrite(t, p, fmt.Sprintf("f%d-%d", who, i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
				p.index.run()
			}
		})
	}
	wg.Wait()
	n := len(segmentsOf(f))
	assert.True(t, n <= 2*segmentMany, n, "segments")
	q := openFake(t, f, nil)
	var all map[string]providers.Info
	got := spent(q, func() { all = listed(t, q, "", false) })
	assert.True(t, got == "List=1" && len(all) == 2*rounds, len(all), "entries cost", got)
	for name, info := range all {
		assert.Equal(t, info.Attr.Mode, 0o700, name, info)
	}
}

// Of two versions made in the same second, of which each went into a segment of its own, the
// later one counts.
func TestIndexOfOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		p := openFake(t, f, nil)
		for i, content := range []string{"x", "xx", "xxx"} {
			mustWrite(t, p, "a", content, providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700 + uint32(i)}})
			p.index.run()
			time.Sleep(10 * time.Millisecond)
		}
		q := openFake(t, f, nil)
		var all map[string]providers.Info
		got := spent(q, func() { all = listed(t, q, "", false) })
		assert.True(t, got == "List=1" && all["a"].Attr.Mode == 0o702, all, "cost", got)
	})
}

// Of many segments there is one, what was deleted is not in it, and who reads meanwhile looks
// again.
func TestCompaction(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	for i := range segmentMany - 1 {
		mustWrite(t, p, fmt.Sprint("f", i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
		p.index.run()
	}
	assert.Equal(t, len(segmentsOf(f)), segmentMany-1, "segments")
	q := openFake(t, newFake(), nil) // reads the names of segments that are gone
	<-q.index.loaded
	q.store = p.store
	old := assert.Of(q.list(t.Context(), Query{Prefix: "pre/" + segmentsAt})).OK(t)
	assert.OK(t, p.Delete(t.Context(), loc("f3"), providers.DeleteOptions{If: providers.Unconditional()}))
	p.index.run()
	keys := segmentsOf(f)
	assert.Equal(t, len(keys), 1, "segments:", keys)
	q.index.loaded = make(chan struct{})
	q.index.start(old.Items, true)
	<-q.index.loaded
	assert.Equal(t, len(q.index.known), segmentMany-2, "records after another removed them")
	assert.Equal(t, len(assert.Of(decodeSegment(f.objects[keys[0]].content, indexMost)).OK(t)), segmentMany-2, "records")
}

// What becomes of a key while a segment that tells of it cannot be written is what the
// next one tells.
func TestSegmentFailsMeanwhile(t *testing.T) {
	made := func(mode uint32) func(*testing.T, *Provider) {
		return func(t *testing.T, p *Provider) {
			mustWrite(t, p, "a", "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: mode}})
		}
	}
	removed := func(t *testing.T, p *Provider) {
		assert.Is(t, p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.Unconditional()}), nil)
	}
	type changes = []func(*testing.T, *Provider)
	for _, test := range []struct {
		name              string
		before, meanwhile changes
		gone              bool
	}{
		{"changed", changes{made(0o700)}, changes{made(0o711)}, false},
		{"removed", changes{made(0o700)}, changes{removed}, true},
		{"made again", changes{made(0o700), removed}, changes{made(0o711)}, false},
		{"removed again", changes{made(0o700), removed}, changes{made(0o711), removed}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				var meanwhile func() // nil: segments are taken
				c := &client{f: f}
				c.before = func(op, key string) error {
					if now := meanwhile; now != nil && op == "Put" && strings.Contains(key, segmentsAt) {
						meanwhile = nil
						now()
						return errNoRoute
					}
					return nil
				}
				p := assert.Of(openFakeErr(t, c, nil)).OK(t)
				<-p.index.loaded
				for _, change := range test.before {
					change(t, p)
				}
				meanwhile = func() {
					time.Sleep(2 * time.Second) // of the bubble: in another second, and before the timer
					for _, change := range test.meanwhile {
						change(t, p)
					}
				}
				p.index.run()
				p.index.run()
				keys := segmentsOf(f)
				assert.Must(t, len(keys) == 1, "segments", keys)
				all, err := decodeSegment(f.objects[keys[0]].content, indexMost)
				assert.Must(t, err == nil && len(all) == 1, "records", all, err)
				got := all[0].record
				if got.is(recordGone) != test.gone || test.gone && got.at != seconds(time.Now()) || !test.gone && got.bits&recordPerm != 0o711 {
					t.Errorf("the segment says %+v, now is %d", got, seconds(time.Now()))
				}
			})
		})
	}
}

// That segments cannot be written is told, and that they can again; what Close breaks
// off is not.
func TestSegmentsTellHowTheyEnd(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	s := p.store.(*client)
	<-p.index.loaded
	var told []string
	p.index.ended = func(work string, err error) { told = append(told, fmt.Sprint(work, " ", err != nil)) }
	mustWrite(t, p, "a", "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
	s.before = func(string, string) error { return errNoRoute }
	p.index.run()
	s.before = nil
	p.index.run()
	s.before = func(string, string) error { p.index.cancel(); return errNoRoute }
	p.index.mu.Lock()
	p.index.dirty[recordID("a")] = struct{}{} // there is something to write
	p.index.mu.Unlock()
	p.index.run()
	s.before = nil
	assert.Slice(t, told, []string{"attribute index true", "attribute index false"}, "told")
}

// Whatever the network does.
func TestCloseIsBounded(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, c := range []struct {
		name string
		how  func(ctx context.Context) error
		most time.Duration
		fail bool // a writing failed before
	}{
		{"no network", func(context.Context) error { return errNoRoute }, 2 * time.Second, false},
		{"no answer", hang, 2 * indexClose, false},
		{"no answer, known before", hang, indexClose - time.Second/4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				p := openFake(t, f, nil)
				mustWrite(t, p, "a", "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
				<-p.index.loaded
				p.store.(*client).stuck = c.how
				if c.fail {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					h := p.index
					h.cancel()
					h.ctx, h.cancel = ctx, cancel
					h.run()
					cancel()
				}
				start := time.Now()
				p.Close()
				took := time.Since(start)
				assert.True(t, took <= c.most, "close took", took)
				if len(p.index.dirty) != 1 || len(segmentsOf(f)) != 0 {
					t.Errorf("%d wait, keys %q", len(p.index.dirty), f.keys())
				}
			})
		})
	}
}
