package mountspec

import (
	"strconv"
	"strings"
)

func smallInteger(s string) (int64, bool) {
	if !plainInteger().MatchString(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// nearest returns the word that was probably meant: the same but for case,
// dashes and underscores, or a few letters away. Empty if none.
func nearest(got string, words []string) string { return Nearest(got, words, 64, fold) }

// Nearest returns the word that folds to the same as got, else the one that is
// at most a third of got's letters away, the nearest first. Empty if there is
// none. A text longer than longest bytes is not compared: it may come from
// outside.
func Nearest(got string, words []string, longest int, fold func(string) string) string {
	if len(got) > longest {
		return ""
	}
	best, bestCost := "", len(got)/3+1
	for _, w := range words {
		if len(w) > longest {
			continue
		}
		if fold(w) == fold(got) {
			return w
		}
		if cost := Distance(got, w); cost < bestCost || cost == bestCost && best == "" {
			best, bestCost = w, cost
		}
	}
	return best
}

var joiners = strings.NewReplacer("-", "", "_", "")

// fold makes read_only, readOnly and read-only one word.
func fold(s string) string { return strings.ToLower(joiners.Replace(s)) }

// Distance is the optimal string alignment distance, by bytes: the number of letters to
// add, remove or replace, where a swap of two neighbours counts as one.
func Distance(a, b string) int {
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

func itoa(n int) string { return strconv.Itoa(n) }
