package bucket

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// randomRecords are as of a tree in which little has the same time.
func randomRecords(n int, r *rand.Rand) []keyedRecord {
	all := make([]keyedRecord, n)
	for i := range all {
		at := 1_700_000_000 + r.Uint32N(30_000_000)
		all[i] = keyedRecord{r.Uint64(), record{check: r.Uint32(), at: at, slack: uint16(r.IntN(2) * 5), bits: uint32(attributes)<<recordValid | 0o644, uid: 1000, gid: 1000,
			mtime: int64(at - uint32(r.IntN(100))), nsec: r.Uint32N(1e9)}}
	}
	return all
}

func TestSegmentRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := randomRecords(1000, r)
	all = append(all, keyedRecord{5, record{bits: recordGone, at: 7}}, keyedRecord{6, record{bits: recordMore}}, keyedRecord{0, record{}},
		keyedRecord{7, record{bits: recordLink | uint32(providers.AttrModTime)<<recordValid, target: 65535, slack: 65535, at: 1<<32 - 1, mtime: -5, nsec: 999_999_999}})
	got, err := decodeSegment(encodeSegment(all), len(all))
	assert.True(t, err == nil && slices.Equal(got, all), len(got), "records of", len(all), err)
	file := encodeSegment(all[:10])
	for range 1000 { // whatever comes, no panic, and no record of what is damaged
		b := slices.Clone(file)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		got, err := decodeSegment(b, 10)
		assert.Must(t, err != nil || len(got) == 0 || slices.Equal(got, all[:10]), b, "gives", got)
	}
}

// A version counts only in the time in which it was made.
func TestRecordTimes(t *testing.T) {
	at := time.Unix(1_000_000_000, 0)
	o := &object{Object: Object{ETag: "e", Size: 5, Modified: at}}
	exact, within := recordOf(o), recordWithin(o, at.Add(-time.Second), at)
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
		a, b := exact.matches(c.etag, c.size, c.modified), within.matches(c.etag, c.size, c.modified)
		assert.True(t, a == c.exact && b == c.within, c.name, a, b, c.exact, c.within)
	}
}

// BenchmarkIndex tells what 100,000 cost.
func BenchmarkIndex(b *testing.B) {
	all := randomRecords(100_000, rand.New(rand.NewPCG(1, 2)))
	file := encodeSegment(all)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var h *index
	for b.Loop() {
		got := assert.Of(decodeSegment(file, indexMost)).OK(b)
		h = newIndex(&objects{})
		h.merge(got)
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(all)
	runtime.KeepAlive(file)
	b.ReportMetric(float64(len(file))/float64(len(all)), "file-B/record")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(h.known)), "mem-B/record")
}
