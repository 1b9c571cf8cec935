package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

func TestCopyName(t *testing.T) {
	long := strings.Repeat("é", 127)
	for _, c := range []struct{ name, want string }{
		{"a", "a.conflict-12345678"},
		{"a.txt", "a.conflict-12345678.txt"},
		{"a.tar.gz", "a.tar.conflict-12345678.gz"},
		{".bashrc", ".bashrc.conflict-12345678"},
		{".config.json", ".config.conflict-12345678.json"},
		{"..x", "..x.conflict-12345678"},
		{"a.", "a.conflict-12345678."},
		{"a.conflict-abcdef01.txt", "a.conflict-12345678.txt"},
		{"a.conflict-abcdef01", "a.conflict-12345678"},
		{"a.conflict-nothex.txt", "a.conflict-nothex.conflict-12345678.txt"},
		{".conflict-abcdef01", ".conflict-abcdef01.conflict-12345678"},
		{long + ".t", strings.Repeat("é", 117) + ".conflict-12345678.t"},
		{"x." + strings.Repeat("y", 250), "x." + strings.Repeat("y", 235) + ".conflict-12345678"},
	} {
		got := copyName(c.name, "12345678")
		assert.True(t, got == c.want && len(got) <= providers.MaxName, c.name, "got", got, "want", c.want)
	}
}

// Names that are taken have more of the hash, and then another hash. They never end.
func TestCopyNames(t *testing.T) {
	var got []string
	for name := range CopyNames("a.conflict-00000000.txt", EmptyHash) {
		if got = append(got, name); len(got) == 8 {
			break
		}
	}
	for i, digits := range []int{8, 16, 32, 64} {
		assert.Equal(t, got[i], "a.conflict-"+EmptyHash[:digits]+".txt")
		assert.Equal(t, len(got[4+i]), len(got[i]))
	}
	slices.Sort(got)
	assert.Equal(t, len(slices.Compact(got)), 8, "different names")
}
