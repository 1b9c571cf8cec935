package lines

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A long text, changed here and there; and what is worst for the search: texts
// without anything in common, in another order, of very few different lines, and
// of a period that every group slides through.
var hard = []struct {
	name string
	make func(g *generator) (base, ours, theirs []string)
}{
	{"100 000 lines, ten changes", func(g *generator) (base, ours, theirs []string) {
		base = g.distinct(100_000)
		ours, theirs = slices.Clone(base), slices.Clone(base)
		for i := 5_000; i < len(base); i += 20_000 {
			ours[i], theirs[i+5_000] = "ours", "theirs"
		}
		return base, ours, theirs
	}},
	{"90 000 lines of code, a thousand changes", func(g *generator) (base, ours, theirs []string) {
		base = g.code(14_000)
		return base, g.often(base, 120), g.often(base, 120)
	}},
	{"50 000 lines, nothing in common", func(g *generator) (base, ours, theirs []string) {
		all := g.distinct(150_000)
		return all[:50_000], all[50_000:100_000], all[100_000:]
	}},
	{"50 000 lines, in other orders", func(g *generator) (base, ours, theirs []string) {
		base = g.distinct(50_000)
		return base, g.disordered(base), g.disordered(base)
	}},
	{"50 000 lines, of which two are different", func(g *generator) (base, ours, theirs []string) {
		return g.lines(50_000, 2), g.lines(50_000, 2), g.lines(50_000, 2)
	}},
	{"50 000 lines of one period", func(g *generator) (base, ours, theirs []string) {
		base = slices.Repeat([]string{"a", "b", "c"}, 17_000)
		return base, g.often(base, 5), g.often(base, 5)
	}},
	{"50 000 equal lines, others between", func(g *generator) (base, ours, theirs []string) {
		base = slices.Repeat([]string{"x"}, 50_000)
		mixed := func() []string {
			m := slices.Clone(base)
			for i := g.IntN(7); i < len(m); i += 1 + g.IntN(7) {
				m[i] = fmt.Sprint(g.IntN(5))
			}
			return m
		}
		return mixed(), base, mixed()
	}},
	{"a line of 20 MB", func(g *generator) (base, ours, theirs []string) {
		long := strings.Repeat("x", 20<<20)
		return []string{long, "a", "b", "c"}, []string{long, "a", "b", "d"}, []string{long + "x", "a", "b", "c"}
	}},
}

func (g *generator) disordered(lines []string) []string {
	lines = slices.Clone(lines)
	g.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

func (g *generator) hard(i int) mergeCase {
	base, ours, theirs := hard[i].make(g)
	ending := g.endings()
	return mergeCase{hard[i].name, ending(base), ending(ours), ending(theirs)}
}

func BenchmarkMerge(b *testing.B) {
	for i, h := range hard {
		b.Run(h.name, func(b *testing.B) {
			c := newGenerator(1).hard(i)
			b.SetBytes(int64(len(c.base) + len(c.ours) + len(c.theirs)))
			for b.Loop() {
				Merge(c.base, c.ours, c.theirs, labels)
			}
		})
	}
}
