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

	"github.com/wsmount/wsmount/providers"
)

// sidecarsOf are the keys of sidecars in a bucket.
func sidecarsOf(f *fake) []string {
	return slices.DeleteFunc(f.keys(), func(key string) bool { return !strings.HasPrefix(key, "pre/"+sidecars) })
}

// TestDamagedSidecars are told to the log and to nobody else, and stay.
func TestDamagedSidecars(t *testing.T) {
	good := encodeHints([]keyed{{1, hint{at: 5}}, {2, hint{at: 6, mtime: 8}}})
	flipped := bytes.Clone(good)
	flipped[len(flipped)-6] ^= 1
	for name, content := range map[string]string{
		"empty": "", "short": string(good[:len(good)-3]), "shorter": sidecarHead, "flipped": string(flipped), "trailing": string(good) + "x",
		"foreign": "hello\nworld\n", "newer": strings.Replace(string(good), "hints 2", "hints 3", 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("pre/a", "x", s3fs(0o100755))
			bad := "pre/" + sidecars + "0-bad"
			f.put(bad, content, nil)
			f.put("pre/"+sidecars+"1-good", string(good), nil)
			out := &lockedBuffer{}
			q := openFake(t, f, &Options{Prefix: "pre/", Logger: slog.New(slog.NewTextHandler(out, nil))})
			if got := listed(t, q, "", true); len(got) != 1 || got["a"].Attr.Mode != 0o755 {
				t.Errorf("listed %+v", got)
			}
			if !strings.Contains(out.String(), "hints of attributes are ignored") || !strings.Contains(out.String(), bad) {
				t.Errorf("log: %s", out)
			}
			if len(q.hints.known) != 3 {
				t.Errorf("%d hints are known", len(q.hints.known))
			}
			q.hints.io.Lock()
			err := q.hints.compact(t.Context())
			q.hints.io.Unlock()
			if keys := sidecarsOf(f); err != nil || len(keys) != 2 || keys[0] != bad {
				t.Errorf("left: %q, %v", keys, err)
			}
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

// TestHintsOfTwo: two mounts that write, and make one sidecar of many, at the
// same time lose no hint.
func TestHintsOfTwo(t *testing.T) {
	f := newFake()
	const rounds = 3 * sidecarMany
	var wg sync.WaitGroup
	for who := range 2 {
		p := openFake(t, f, nil)
		wg.Go(func() {
			for i := range rounds {
				mustWrite(t, p, fmt.Sprintf("f%d-%d", who, i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
				p.hints.run()
			}
		})
	}
	wg.Wait()
	if n := len(sidecarsOf(f)); n > 2*sidecarMany {
		t.Errorf("%d sidecars", n)
	}
	q := openFake(t, f, nil)
	var all map[string]providers.Info
	if got := spent(q, func() { all = listed(t, q, "", false) }); got != "List=1" || len(all) != 2*rounds {
		t.Errorf("%d entries cost %s", len(all), got)
	}
	for name, info := range all {
		if info.Attr.Mode != 0o700 {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

// TestHintsOfOneSecond: of two versions made in the same second, of which each went into
// a sidecar of its own, the later one counts.
func TestHintsOfOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		p := openFake(t, f, nil)
		for i, content := range []string{"x", "xx", "xxx"} {
			mustWrite(t, p, "a", content, providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700 + uint32(i)}})
			p.hints.run()
			time.Sleep(10 * time.Millisecond)
		}
		q := openFake(t, f, nil)
		var all map[string]providers.Info
		if got := spent(q, func() { all = listed(t, q, "", false) }); got != "List=1" || all["a"].Attr.Mode != 0o702 {
			t.Errorf("%+v cost %s", all, got)
		}
	})
}

// TestCompaction: of many sidecars there is one, what was deleted is not in it,
// and who reads meanwhile looks again.
func TestCompaction(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	for i := range sidecarMany - 1 {
		mustWrite(t, p, fmt.Sprint("f", i), "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
		p.hints.run()
	}
	if n := len(sidecarsOf(f)); n != sidecarMany-1 {
		t.Errorf("%d sidecars", n)
	}
	q := openFake(t, newFake(), nil) // reads the names of sidecars that are gone
	<-q.hints.loaded
	q.store = p.store
	old, err := q.list(t.Context(), Query{Prefix: "pre/" + sidecars})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), loc("f3"), providers.DeleteOptions{If: providers.Unconditional()}); err != nil {
		t.Fatal(err)
	}
	p.hints.run()
	keys := sidecarsOf(f)
	if len(keys) != 1 {
		t.Errorf("sidecars: %q", keys)
	}
	q.hints.loaded = make(chan struct{})
	q.hints.start(old.Items, true)
	<-q.hints.loaded
	if n := len(q.hints.known); n != sidecarMany-2 {
		t.Errorf("%d hints after another removed them", n)
	}
	all, err := decodeHints(f.objects[keys[0]].content, hintsMost)
	if err != nil || len(all) != sidecarMany-2 {
		t.Errorf("%d hints, %v", len(all), err)
	}
}

// What becomes of a key while a sidecar that tells of it cannot be written is what the
// next one tells.
func TestSidecarFailsMeanwhile(t *testing.T) {
	made := func(mode uint32) func(*testing.T, *Provider) {
		return func(t *testing.T, p *Provider) {
			mustWrite(t, p, "a", "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: mode}})
		}
	}
	removed := func(t *testing.T, p *Provider) {
		if err := p.Delete(t.Context(), loc("a"), providers.DeleteOptions{If: providers.Unconditional()}); err != nil {
			t.Error(err)
		}
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
				var meanwhile func() // nil: sidecars are taken
				c := &client{f: f}
				c.before = func(op, key string) error {
					if now := meanwhile; now != nil && op == "Put" && strings.Contains(key, sidecars) {
						meanwhile = nil
						now()
						return errNoRoute
					}
					return nil
				}
				p, err := openFakeErr(t, c, nil)
				if err != nil {
					t.Fatal(err)
				}
				<-p.hints.loaded
				for _, change := range test.before {
					change(t, p)
				}
				meanwhile = func() {
					time.Sleep(2 * time.Second) // of the bubble: in another second, and before the timer
					for _, change := range test.meanwhile {
						change(t, p)
					}
				}
				p.hints.run()
				p.hints.run()
				keys := sidecarsOf(f)
				if len(keys) != 1 {
					t.Fatalf("sidecars %q", keys)
				}
				all, err := decodeHints(f.objects[keys[0]].content, hintsMost)
				if err != nil || len(all) != 1 {
					t.Fatalf("hints %+v, %v", all, err)
				}
				got := all[0].hint
				if got.is(hintGone) != test.gone || test.gone && got.at != seconds(time.Now()) || !test.gone && got.bits&hintPerm != 0o711 {
					t.Errorf("the sidecar says %+v, now is %d", got, seconds(time.Now()))
				}
			})
		})
	}
}

// That sidecars cannot be written is told, and that they can again; what Close breaks
// off is not.
func TestSidecarsTellHowTheyEnd(t *testing.T) {
	f := newFake()
	p := openFake(t, f, nil)
	s := p.store.(*client)
	<-p.hints.loaded
	var told []string
	p.hints.ended = func(work string, err error) { told = append(told, fmt.Sprint(work, " ", err != nil)) }
	mustWrite(t, p, "a", "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
	s.before = func(string, string) error { return errNoRoute }
	p.hints.run()
	s.before = nil
	p.hints.run()
	s.before = func(string, string) error { p.hints.cancel(); return errNoRoute }
	p.hints.mu.Lock()
	p.hints.dirty[hintID("a")] = struct{}{} // there is something to write
	p.hints.mu.Unlock()
	p.hints.run()
	s.before = nil
	if want := []string{"attribute index true", "attribute index false"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestCloseIsBounded: whatever the network does.
func TestCloseIsBounded(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, c := range []struct {
		name string
		how  func(ctx context.Context) error
		most time.Duration
		fail bool // a writing failed before
	}{
		{"no network", func(context.Context) error { return errNoRoute }, 2 * time.Second, false},
		{"no answer", hang, 2 * hintsClose, false},
		{"no answer, known before", hang, hintsClose - time.Second/4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				p := openFake(t, f, nil)
				mustWrite(t, p, "a", "x", providers.WriteOptions{Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o700}})
				<-p.hints.loaded
				p.store.(*client).stuck = c.how
				if c.fail {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					h := p.hints
					h.cancel()
					h.ctx, h.cancel = ctx, cancel
					h.run()
					cancel()
				}
				start := time.Now()
				p.Close()
				if took := time.Since(start); took > c.most {
					t.Errorf("close took %v", took)
				}
				if len(p.hints.dirty) != 1 || len(sidecarsOf(f)) != 0 {
					t.Errorf("%d wait, keys %q", len(p.hints.dirty), f.keys())
				}
			})
		})
	}
}
