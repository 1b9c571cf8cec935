package linediff

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ name, a, b, want string }{
		{"changed line", "a\nb\nc\n", "a\nx\nc\n", " a|-b|+x| c"},
		{"added", "a\n", "a\nb\n", " a|+b"},
		{"removed", "a\nb\n", "b\n", "-a| b"},
		{"new", "", "a\n", "+a"},
		{"gone", "a\n", "", "-a"},
		{"far lines are left out", "1\n2\n3\n4\n5\n", "1\n2\n3\n4\n6\n", " 2| 3| 4|-5|+6"},
		{"two places", "a\nb\nc\nd\n", "x\nb\nc\ny\n", "-a|+x| b| c|-d|+y"},
		{"escapes", "a\n", "\x1b[1A\n", `-a|+\x1b[1A`},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, strings.Join(Of(c.a, c.b), "|"), c.want)
		})
	}
	big := strings.Repeat("x\ny\n", 5000)
	assert.Equal(t, len(Of(big, strings.Repeat("z\n", 5000))), 15000, "a large difference has lines")
}
