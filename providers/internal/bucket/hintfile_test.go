package bucket

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// randomHints are as of a tree in which little has the same time.
func randomHints(n int, r *rand.Rand) []keyed {
	all := make([]keyed, n)
	for i := range all {
		at := 1_700_000_000 + r.Uint32N(30_000_000)
		all[i] = keyed{r.Uint64(), hint{check: r.Uint32(), at: at, slack: uint16(r.IntN(2) * 5), bits: uint32(attributes)<<hintValid | 0o644, uid: 1000, gid: 1000,
			mtime: int64(at - uint32(r.IntN(100))), nsec: r.Uint32N(1e9)}}
	}
	return all
}

func TestSidecarRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := randomHints(1000, r)
	all = append(all, keyed{5, hint{bits: hintGone, at: 7}}, keyed{6, hint{bits: hintMore}}, keyed{0, hint{}},
		keyed{7, hint{bits: hintLink | uint32(providers.AttrModTime)<<hintValid, target: 65535, slack: 65535, at: 1<<32 - 1, mtime: -5, nsec: 999_999_999}})
	got, err := decodeHints(encodeHints(all), len(all))
	if err != nil || !slices.Equal(got, all) {
		t.Errorf("%d hints of %d, %v", len(got), len(all), err)
	}
	file := encodeHints(all[:10])
	for range 1000 { // whatever comes, no panic, and no hint of what is damaged
		b := slices.Clone(file)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if got, err := decodeHints(b, 10); err == nil && !slices.Equal(got, all[:10]) {
			t.Fatalf("%q gives %v", b, got)
		}
	}
}

// TestHintTimes: a version counts only in the time in which it was made.
func TestHintTimes(t *testing.T) {
	at := time.Unix(1_000_000_000, 0)
	o := &object{Object: Object{ETag: "e", Size: 5, Modified: at}}
	exact, within := hintOf(o), hintWithin(o, at.Add(-time.Second), at)
	for _, c := range []struct {
		name          string
		etag          string
		size          int64
		modified      time.Time
		exact, within bool
	}{
		{"same", "e", 5, at, true, true},
		{"same second", "e", 5, at.Add(time.Second / 2), true, true},
		{"not told", "e", 5, time.Time{}, true, true},
		{"other tag", "f", 5, at, false, false},
		{"other size", "e", 6, at, false, false},
		{"just after", "e", 5, at.Add(2 * time.Second), false, true},
		{"just before", "e", 5, at.Add(-3 * time.Second), false, true},
		{"after", "e", 5, at.Add(3 * time.Second), false, false},
		{"before", "e", 5, at.Add(-4 * time.Second), false, false},
	} {
		if a, b := exact.matches(c.etag, c.size, c.modified), within.matches(c.etag, c.size, c.modified); a != c.exact || b != c.within {
			t.Errorf("%s: got %v and %v, want %v and %v", c.name, a, b, c.exact, c.within)
		}
	}
}

// BenchmarkHints tells what 100,000 cost.
func BenchmarkHints(b *testing.B) {
	all := randomHints(100_000, rand.New(rand.NewPCG(1, 2)))
	file := encodeHints(all)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var h *hints
	for b.Loop() {
		got, err := decodeHints(file, hintsMost)
		if err != nil {
			b.Fatal(err)
		}
		h = newHints(&objects{})
		h.merge(got)
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(all)
	runtime.KeepAlive(file)
	b.ReportMetric(float64(len(file))/float64(len(all)), "file-B/hint")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(h.known)), "mem-B/hint")
}
