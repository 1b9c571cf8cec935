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
// none. What is longer than longest bytes is not compared: it may come from
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
		if cost := distance(got, w); cost < bestCost || cost == bestCost && best == "" {
			best, bestCost = w, cost
		}
	}
	return best
}

var joiners = strings.NewReplacer("-", "", "_", "")

// fold makes read_only, readOnly and read-only one word.
func fold(s string) string { return strings.ToLower(joiners.Replace(s)) }

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func itoa(n int) string { return strconv.Itoa(n) }
