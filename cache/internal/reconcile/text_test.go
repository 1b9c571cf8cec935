package reconcile

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Of a text that is declared so the lines of both sides are kept, where texts are
// merged at all; of what is no text nothing is.
func TestCombineUnion(t *testing.T) {
	for name, c := range map[string]struct {
		policy   Conflict
		base     string
		union    bool
		want     string
		combined bool
	}{
		"declared":           {Combine, "a\n", true, "a\nx\ny\n", true},
		"not declared":       {Combine, "a\n", false, "", false},
		"by another policy":  {Abort, "a\n", true, "", false},
		"what is no text":    {Combine, "a\n\x00", true, "", false},
		"made on both sides": {Combine, "", true, "x\ny\n", true},
	} {
		got, ok := c.policy.CombineTexts([]byte(c.base), []byte(c.base+"x\n"), []byte(c.base+"y\n"), c.union)
		assert.True(t, ok == c.combined && (!ok || string(got) == c.want), name, "got", got, ok)
	}
}
