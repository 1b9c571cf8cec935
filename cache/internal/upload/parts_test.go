package upload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func TestPartsOf(t *testing.T) {
	const mib = 1 << 20
	for _, x := range []struct {
		size   int64
		limits providers.PartLimits
		want   int64
	}{
		{15 * mib, providers.PartLimits{}, 0},
		{16 * mib, providers.PartLimits{}, 8 * mib},
		{16 * mib, providers.PartLimits{Min: 10 * mib}, 0},
		{20 * mib, providers.PartLimits{Min: 10 * mib}, 10 * mib},
		{100 * mib, providers.PartLimits{Count: 4}, 25 * mib},
		{100*mib + 1, providers.PartLimits{Count: 4}, 25*mib + 1},
		{100 * mib, providers.PartLimits{Count: 4, Max: 20 * mib}, 0},
	} {
		assert.Equal(t, partsOf(x.size, partSize, x.limits), x.want, x.size, "bytes, limits", x.limits, "parts of")
	}
}

func TestSpared(t *testing.T) {
	change := func(off, end int64) content.Span { return content.Span{Off: off, End: end} }
	for _, x := range []struct {
		name       string
		changed    []content.Span
		base, size int64
		want       []piece
	}{
		{"nothing", nil, 100, 100, []piece{{0, 100, true}}},
		{"grown", nil, 100, 101, []piece{{0, 100, true}, {100, 1, false}}},
		{"cut off", []content.Span{change(60, 100)}, 100, 60, []piece{{0, 60, true}}},
		{"cut off and grown", []content.Span{change(60, 100)}, 100, 80, []piece{{0, 60, true}, {60, 20, false}}},
		{"the beginning", []content.Span{change(0, 1)}, 100, 100, []piece{{0, 10, false}, {10, 90, true}}},
		{"near the beginning", []content.Span{change(9, 10)}, 100, 100, []piece{{0, 10, false}, {10, 90, true}}},
		{"the middle", []content.Span{change(50, 51)}, 100, 100, []piece{{0, 50, true}, {50, 10, false}, {60, 40, true}}},
		{"two, close", []content.Span{change(50, 51), change(69, 71)}, 100, 100, []piece{{0, 50, true}, {50, 21, false}, {71, 29, true}}},
		{"two, far", []content.Span{change(50, 51), change(70, 71)}, 100, 100, []piece{{0, 50, true}, {50, 10, false}, {60, 10, true}, {70, 10, false}, {80, 20, true}}},
		{"the end", []content.Span{change(99, 100)}, 100, 100, []piece{{0, 99, true}, {99, 1, false}}},
		{"all", []content.Span{change(0, 1<<40)}, 100, 100, []piece{{0, 100, false}}},
		{"grown a lot", []content.Span{change(95, 120)}, 100, 200, []piece{{0, 95, true}, {95, 105, false}}},
	} {
		assert.Slice(t, spared(x.changed, x.base, x.size, 10), x.want, x.name)
	}
}

// Whatever has changed, the pieces are the whole in order, what changed is sent,
// and none but the last is too small.
func TestSparedIsWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		base, size := 1+r.Int64N(300), 1+r.Int64N(300)
		var changed []content.Span
		for at := r.Int64N(60); at < 300; at += r.Int64N(80) {
			c := content.Span{Off: at, End: at + 1 + r.Int64N(30)}
			changed, at = append(changed, c), c.End+1
		}
		if size < base {
			changed = append(slices.DeleteFunc(changed, func(c content.Span) bool { return c.End > size }), content.Span{Off: size, End: base})
		}
		var all []piece
		for _, one := range spared(changed, base, size, 10) {
			all = cut(all, one, 16, 10)
		}
		assert.OK(t, checkPieces(all, changed, base, size), changed, "of", base, "now", size, all)
	}
}

func checkPieces(all []piece, changed []content.Span, base, size int64) error {
	end := int64(0)
	for i, one := range all {
		switch {
		case one.off != end:
			return fmt.Errorf("a hole at %d", end)
		case one.size < 10 && i < len(all)-1:
			return fmt.Errorf("%v is too small", one)
		case one.copied && one.off+one.size > base:
			return fmt.Errorf("%v is not there", one)
		}
		end += one.size
		for _, c := range changed {
			if one.copied && c.Off < end && c.End > one.off {
				return fmt.Errorf("%v has changed", one)
			}
		}
	}
	if end != size {
		return fmt.Errorf("it ends at %d", end)
	}
	return nil
}
