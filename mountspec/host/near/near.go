// Package near says what somebody who wrote a name that is not known may have meant.
//
//	hint := near.Hint("@acme/op", known, "register it")
package near

import (
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// Hint is one that names the candidate that was probably meant, or
// otherwise.
func Hint(got string, candidates []string, otherwise string) string {
	if n := mountspec.Nearest(got, candidates, 100, fold); n != "" {
		return "did you mean " + n + "?"
	}
	return otherwise
}

func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", "@", "").Replace(s))
}
