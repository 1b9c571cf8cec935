package host

import "strings"

// near returns the candidate that was probably meant: at most a third of
// the letters away. Empty: none.
func near(got string, candidates []string) string {
	best, cost := "", len(got)/3+1
	for _, c := range candidates {
		if len(got) > 100 || len(c) > 100 {
			continue
		}
		if fold(c) == fold(got) {
			return c
		}
		if d := distance(got, c); d < cost || d == cost && best == "" {
			best, cost = c, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", "@", "").Replace(s))
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diag
			if a[i] != b[j] {
				d++
			}
			diag = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func didYouMean(got string, candidates []string, otherwise string) string {
	if n := near(got, candidates); n != "" {
		return "did you mean " + n + "?"
	}
	return otherwise
}
