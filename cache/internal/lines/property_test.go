package lines

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestProperties(t *testing.T) {
	tier.Check(t, func(r *rapid.T) {
		base := anyText().Draw(r, "base")
		checkMerge(r, base, edited(r, base), edited(r, base))
	})
}

// The fuzzer begins with the cases of the table.
func FuzzMerge(f *testing.F) {
	for _, c := range merges {
		f.Add(spelled(c.base), spelled(c.ours), spelled(c.theirs))
	}
	f.Fuzz(func(t *testing.T, base, ours, theirs []byte) {
		checkMerge(t, base, ours, theirs)
	})
}

// anyText is a text of few different lines, with every kind of end.
func anyText() *rapid.Generator[[]byte] {
	return rapid.Custom(func(r *rapid.T) []byte {
		line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "}\n", "\n", "a\r\n", "\r\n", "\x00\n"})
		var text []byte
		for _, l := range rapid.SliceOfN(line, 0, 20).Draw(r, "lines") {
			text = append(text, l...)
		}
		return append(text, rapid.SampledFrom([]string{"", "", "a", "b", "\r"}).Draw(r, "last")...)
	})
}

func edited(r *rapid.T, data []byte) []byte {
	lines := bytes.SplitAfter(data, newline)
	for range rapid.IntRange(0, 3).Draw(r, "edits") {
		lo := rapid.IntRange(0, len(lines)).Draw(r, "from")
		hi := rapid.IntRange(lo, min(lo+3, len(lines))).Draw(r, "to")
		lines = slices.Replace(lines, lo, hi, anyText().Draw(r, "instead"))
	}
	return bytes.Join(lines, nil)
}

// checkMerge checks what holds for any three texts.
func checkMerge(t rapid.TB, base, ours, theirs []byte) {
	t.Helper()
	before := [][]byte{bytes.Clone(base), bytes.Clone(ours), bytes.Clone(theirs)}
	checkClean(t, "nothing changed", base, base, base, base)
	checkClean(t, "only ours changed", base, ours, base, ours)
	checkClean(t, "only theirs changed", base, base, theirs, theirs)
	checkClean(t, "both became ours", base, ours, ours, ours)
	checkClean(t, "both became theirs", base, theirs, theirs, theirs)

	m, turned := Merge(base, ours, theirs, labels), Merge(base, theirs, ours, labels)
	assert.Equal(t, (m.Conflicts == 0), (turned.Conflicts == 0), m.Conflicts, "conflicts, and", turned.Conflicts, "with the sides exchanged")
	union := Union(base, ours, theirs)
	if m.Conflicts == 0 && (!bytes.Equal(m.Content, turned.Content) || !bytes.Equal(m.Content, union)) {
		t.Errorf("clean, but %q, with the sides exchanged %q, and as a union %q", m.Content, turned.Content, union)
	}
	if m.Conflicts == 0 {
		checkKnown(t, m.Content, before)
	}
	for i := range m.Content {
		m.Content[i] = 'X'
	}
	assert.True(t, slices.EqualFunc([][]byte{base, ours, theirs}, before, bytes.Equal), "the texts were changed")
}

// checkClean checks that a merge has no conflict and is what is wanted.
func checkClean(t rapid.TB, what string, base, ours, theirs, want []byte) {
	t.Helper()
	got := Merge(base, ours, theirs, labels)
	assert.True(t, got.Conflicts == 0 && bytes.Equal(got.Content, want), what, "got", got.Content, "with", got.Conflicts, "conflicts, want", want)
	if got := Union(base, ours, theirs); !bytes.Equal(got, want) {
		t.Errorf("%s: got the union %q, want %q", what, got, want)
	}
}

// checkKnown checks that there is no line that none of the texts has.
func checkKnown(t rapid.TB, merged []byte, texts [][]byte) {
	t.Helper()
	known := map[string]bool{"": true} // behind the last newline
	for _, text := range texts {
		for _, l := range bytes.SplitAfter(text, newline) {
			known[string(l)] = true
		}
	}
	for _, l := range bytes.SplitAfter(merged, newline) {
		assert.True(t, known[string(l)], "the line", l, "of the merged text stands in none")
	}
}

// A diff is one: with its hunks the one text becomes the other, between them the
// texts are alike, and no two of them touch.
func TestDiff(t *testing.T) {
	tier.Check(t, func(r *rapid.T) {
		n := make(numbering)
		a := n.cut(anyText().Draw(r, "a"))
		b := n.cut(edited(r, a.data))
		var at span // lines of a (lo) and b (hi) that were passed
		for i, h := range newDiffer(len(n)).diff(a.ids, b.ids) {
			same := span{at.lo, h.a.lo}
			assert.Must(r, same.len() == h.b.lo-at.hi && slices.Equal(a.of(same), b.of(span{at.hi, h.b.lo})), "before hunk", i, h, "the texts differ")
			assert.Must(r, (i <= 0 || same.len() != 0) && h.a.len()+h.b.len() != 0, "hunk", i, h, "touches another, or is empty")
			at = span{h.a.hi, h.b.hi}
		}
		assert.Must(r, slices.Equal(a.ids[at.lo:], b.ids[at.hi:]), "behind the last hunk the texts differ")
	})
}
