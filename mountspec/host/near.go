package host

import (
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// didYouMean is a hint that names the candidate that was probably meant, or
// otherwise.
func didYouMean(got string, candidates []string, otherwise string) string {
	if n := mountspec.Nearest(got, candidates, 100, fold); n != "" {
		return "did you mean " + n + "?"
	}
	return otherwise
}

func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", "@", "").Replace(s))
}
