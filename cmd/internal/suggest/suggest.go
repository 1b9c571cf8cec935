// Package suggest finds what a person probably meant: the known names that are
// a typing error away from an unknown one.
//
//	suggest.Near("moutn", []string{"mount", "umount", "status"}) // [mount umount]
package suggest

import (
	"slices"
	"strings"
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
		d := distance(strings.ToLower(name), strings.ToLower(k))
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

// distance is the optimal string alignment distance, by bytes: names are ASCII.
func distance(a, b string) int {
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(b)]
}
