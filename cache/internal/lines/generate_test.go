package lines

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A case is what a merge is asked for.
type mergeCase struct {
	shape              string
	base, ours, theirs []byte
}

type shape struct {
	name   string
	weight int
	make   func(g *generator) (base, ours, theirs []string)
}

// Shapes of texts and of changes, each for a part of the rules that the others
// leave alone. More of the small ones is more, more of the large ones is slow.
var shapes = []shape{
	{"few different lines", 30, func(g *generator) (base, ours, theirs []string) {
		base = g.lines(g.upTo(25), g.upTo(6))
		return base, g.edited(base), g.edited(base)
	}},
	{"the same line", 5, func(g *generator) (base, ours, theirs []string) {
		return g.lines(g.upTo(12), 1), g.lines(g.upTo(12), 1), g.lines(g.upTo(12), 1)
	}},
	{"unrelated", 5, func(g *generator) (base, ours, theirs []string) {
		n := g.upTo(6)
		return g.lines(g.upTo(20), n), g.lines(g.upTo(20), n), g.lines(g.upTo(20), n)
	}},
	{"code", 30, func(g *generator) (base, ours, theirs []string) {
		base = g.code(g.upTo(5))
		return base, g.edited(base), g.edited(base)
	}},
	{"both edit what one edited", 10, func(g *generator) (base, ours, theirs []string) {
		base = g.code(g.upTo(4))
		shared := g.edited(base)
		return base, g.edited(shared), g.edited(shared)
	}},
	{"periods", 8, func(g *generator) (base, ours, theirs []string) {
		period := g.lines(g.upTo(4), 3)
		text := func() []string { return slices.Repeat(period, g.upTo(8)) }
		return g.edited(text()), g.edited(text()), g.edited(text())
	}},
	{"paragraphs among crowded lines", 6, func(g *generator) (base, ours, theirs []string) {
		// What is crowded goes by the whole text, also by what is alike at its ends.
		head, base := g.sparse(g.upTo(300)), g.sparse(40+g.upTo(100))
		return slices.Concat(head, base), slices.Concat(head, g.paragraphs(base)), slices.Concat(head, g.paragraphs(base))
	}},
	{"long code", 3, func(g *generator) (base, ours, theirs []string) {
		base = g.code(40)
		return base, g.edited(base), g.edited(base)
	}},
	{"long and much changed", 1, func(g *generator) (base, ours, theirs []string) {
		base = g.lines(600+g.upTo(1500), 2+g.upTo(40))
		return base, g.often(base, 2+g.upTo(8)), g.often(base, 2+g.upTo(8))
	}},
	{"long and shuffled", 1, func(g *generator) (base, ours, theirs []string) {
		base = g.distinct(600 + g.upTo(1500))
		return base, g.shuffled(base), g.shuffled(base)
	}},
}

// Only in texts as long as these a search is patient enough to look for promising
// points, and knows parts to be short that it would not otherwise search through.
var longest = []shape{
	{"edited everywhere", 1, func(g *generator) (base, ours, theirs []string) {
		base = g.lines(34_000+g.IntN(12_000), 20_000)
		return base, g.often(base, 2+g.upTo(12)), g.often(base, 2+g.upTo(12))
	}},
	{"runs between edits", 3, func(g *generator) (base, ours, theirs []string) {
		base = g.distinct(34_000 + g.IntN(12_000))
		return base, g.runs(base), g.runs(base)
	}},
	{"few blocks moved far", 1, func(g *generator) (base, ours, theirs []string) {
		base = g.distinct(34_000 + g.IntN(12_000))
		return base, g.moved(base), g.moved(g.often(base, 30))
	}},
	{"longer still", 1, func(g *generator) (base, ours, theirs []string) {
		base = g.distinct(140_000)
		return base, g.runs(base), g.often(base, 20)
	}},
}

// generator makes cases of a seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 0))}
}

// upTo is from 1 to n, and rarely 0.
func (g *generator) upTo(n int) int {
	if g.IntN(20) == 0 {
		return 0
	}
	return 1 + g.IntN(n)
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

// some are a number of cases of the shapes.
func (g *generator) some(number int, shapes []shape) (cases []mergeCase) {
	for range number {
		cases = append(cases, g.next(shapes))
	}
	return cases
}

// next is a case of one of the shapes.
func (g *generator) next(shapes []shape) mergeCase {
	all := 0
	for _, s := range shapes {
		all += s.weight
	}
	at := g.IntN(all)
	i := 0
	for ; at >= shapes[i].weight; i++ {
		at -= shapes[i].weight
	}
	base, ours, theirs := shapes[i].make(g)
	ending := g.endings()
	return mergeCase{shapes[i].name, ending(base), ending(ours), ending(theirs)}
}

// endings is a way to end lines: mostly LF, and sometimes not the last one.
func (g *generator) endings() func(lines []string) []byte {
	kind := g.IntN(8)
	return func(lines []string) []byte {
		var b strings.Builder
		side := g.IntN(2) == 0
		for _, l := range lines {
			b.WriteString(l)
			if kind == 0 || kind == 1 && g.IntN(4) == 0 || kind == 2 && side {
				b.WriteByte('\r')
			}
			b.WriteByte('\n')
		}
		text := b.String()
		if kind >= 2 && kind <= 4 && g.IntN(2) == 0 {
			text = strings.TrimSuffix(text, "\n")
		}
		return []byte(text)
	}
}

// lines are n lines, of so many different ones.
func (g *generator) lines(n, different int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = g.line(different)
	}
	return lines
}

func (g *generator) line(different int) string {
	return g.one("", "", "{") + fmt.Sprint(g.IntN(max(different, 1)))
}

func (g *generator) distinct(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprint("line ", i)
	}
	return lines
}

// code is n functions that have much in common.
func (g *generator) code(n int) []string {
	var lines []string
	for range n {
		lines = append(lines, g.function()...)
	}
	return lines
}

func (g *generator) function() []string {
	lines := []string{fmt.Sprint("func ", g.IntN(9), "() {")}
	for range g.upTo(6) {
		lines = append(lines, g.one("\tif x {", "\t}", "", "\treturn", "\ta++", fmt.Sprint("\tdo ", g.IntN(20))))
	}
	return append(lines, "}", "")
}

// edited is some edits away.
func (g *generator) edited(lines []string) []string {
	lines = slices.Clone(lines)
	for range g.upTo(1 + len(lines)/6) {
		lines = g.edit(lines)
	}
	return lines
}

// edit changes one place: lines come, go, are replaced, moved or doubled.
func (g *generator) edit(lines []string) []string {
	lo := g.IntN(len(lines) + 1)
	hi := min(lo+g.upTo(4), len(lines))
	block := slices.Clone(lines[lo:hi])
	switch g.IntN(7) {
	case 0, 1:
		return slices.Delete(lines, lo, hi)
	case 2:
		return slices.Insert(lines, lo, g.lines(g.upTo(3), 6)...)
	case 3:
		return slices.Insert(lines, lo, g.function()...)
	case 4:
		return slices.Insert(lines, lo, block...)
	case 5:
		lines = slices.Delete(lines, lo, hi)
		return slices.Insert(lines, g.IntN(len(lines)+1), block...)
	}
	return slices.Replace(lines, lo, hi, g.lines(g.upTo(3), 6)...)
}

// sparse is mostly blank lines and braces, and some that are not quite as many.
func (g *generator) sparse(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = g.one("", "", "}", "}", g.rare(), fmt.Sprint("line ", i))
	}
	return lines
}

func (g *generator) rare() string { return g.one("return", "else", "end", "done") }

// paragraphs inserts and replaces with lines of which many are new.
func (g *generator) paragraphs(lines []string) []string {
	lines = slices.Clone(lines)
	for range 1 + g.upTo(4) {
		fresh := make([]string, g.upTo([]int{30, 30, 250}[g.IntN(3)]))
		for i := range fresh {
			fresh[i] = fmt.Sprint("new ", g.IntN(1000))
			if g.IntN(4) == 0 {
				fresh[i] = g.one("", "}", g.rare())
			}
		}
		lo := g.IntN(len(lines) + 1)
		lines = slices.Replace(lines, lo, min(lo+g.upTo(20), len(lines)), fresh...)
	}
	return lines
}

// often changes about one line in every so many.
func (g *generator) often(lines []string, every int) []string {
	var changed []string
	for _, l := range lines {
		switch g.IntN(3 * every) {
		case 0:
		case 1:
			changed = append(changed, l, g.one(lines...))
		case 2:
			changed = append(changed, g.one(lines...))
		default:
			changed = append(changed, l)
		}
	}
	return changed
}

// runs changes a few lines after every twenty or so.
func (g *generator) runs(lines []string) []string {
	lines = slices.Clone(lines)
	few := 1 + g.IntN(6)
	for i := 0; i < len(lines); i += 17 + g.IntN(8) {
		for range 1 + g.IntN(few) {
			if i < len(lines) {
				lines[i] = g.one(lines...)
				i++
			}
		}
	}
	return lines
}

// shuffled cuts into blocks and puts them into another order.
func (g *generator) shuffled(lines []string) []string {
	blocks := slices.Collect(slices.Chunk(lines, 1+g.IntN(60)))
	g.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	return slices.Concat(blocks...)
}

// moved puts some blocks elsewhere.
func (g *generator) moved(lines []string) []string {
	lines = slices.Clone(lines)
	for range g.upTo(20) {
		lo := g.IntN(len(lines) - 300)
		hi := lo + 1 + g.IntN(300)
		block := slices.Clone(lines[lo:hi])
		lines = slices.Delete(lines, lo, hi)
		lines = slices.Insert(lines, g.IntN(len(lines)), block...)
	}
	return lines
}
