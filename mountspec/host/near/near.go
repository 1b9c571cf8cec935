// Package near suggests the known name that a user probably meant with an unknown one.
//
//	hint := near.Hint("@acme/op", known, "register it")
package near

import (
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// Hint names the candidate that was probably meant; without one it is
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
