package seamtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestRows: what each row of the descriptions is held by is there.
func TestRows(t *testing.T) {
	text, err := os.ReadFile("testdata/rows.txt")
	assert.OK(t, err)
	for line := range strings.Lines(string(text)) {
		row, by, named := strings.Cut(strings.TrimSpace(line), " | ")
		if row == "" || row[0] == '#' || strings.HasPrefix(by, "none: ") {
			continue
		}
		assert.True(t, named, "nothing holds", row)
		for _, name := range strings.Fields(by) {
			assert.True(t, isTest(t, name), row, "is held by", name, "which there is not")
		}
	}
}

func isTest(t *testing.T, name string) bool {
	t.Helper()
	if check, is := strings.CutPrefix(name, "check:"); is {
		return slices.ContainsFunc(Checks(), func(c Check) bool { return c.Name == check })
	}
	dir, test, _ := strings.Cut(name, ".")
	files, err := filepath.Glob(filepath.Join("..", "..", "..", dir, "*_test.go"))
	assert.OK(t, err)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		assert.OK(t, err)
		return strings.Contains(string(text), "\nfunc "+test+"(")
	})
}
