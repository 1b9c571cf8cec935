// Package suggest finds the names that a person probably meant: known ones that are
// a typing error away from an unknown one.
//
//	suggest.Near("moutn", []string{"mount", "umount", "status"}) // [mount umount]
package suggest

import (
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// Near returns at most three of the known names that are near to name, the
// nearest first. Near means a distance of at most a third of the longer name's
// length, at least 1; a swap of two neighbours counts as one.
func Near(name string, known []string) []string {
	type match struct {
		name string
		d    int
	}
	var found []match
	for _, k := range known {
		d := mountspec.Distance(strings.ToLower(name), strings.ToLower(k))
		if d <= max(1, max(len(name), len(k))/3) {
			found = append(found, match{k, d})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return a.d - b.d })
	var out []string
	for _, m := range found[:min(3, len(found))] {
		out = append(out, m.name)
	}
	return out
}

// Phrase makes a question of near matches, or an empty string without any.
func Phrase(name string, known []string) string {
	near := Near(name, known)
	if len(near) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}
