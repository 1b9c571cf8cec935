package reconcile

import "github.com/wsmount/wsmount/cache/internal/lines"

// MostText is the size up to which a text is merged, of each side: it is in memory then,
// all three.
const MostText = 16 << 20

// MergeTexts merges the changes of two sides to one text, if the policy says so and all three are
// text.
func (c Conflict) MergeTexts(base, ours, theirs []byte) (merged lines.Merged, ok bool) {
	if !c.allText(base, ours, theirs) {
		return merged, false
	}
	return lines.Merge(base, ours, theirs, lines.Labels{Ours: "ours", Base: "base", Theirs: "theirs"}), true
}

// CombineTexts is MergeTexts as a providers.Combine.
func (c Conflict) CombineTexts(base, a, b []byte, union bool) ([]byte, bool) {
	if union && c.allText(base, a, b) {
		return lines.Union(base, a, b), true
	}
	merged, ok := c.MergeTexts(base, a, b)
	return merged.Content, ok && merged.Conflicts == 0
}

// allText reports whether the policy merges, and three contents can be.
func (c Conflict) allText(base, a, b []byte) bool {
	return c.Combines() && lines.Text(base) && lines.Text(a) && lines.Text(b)
}
