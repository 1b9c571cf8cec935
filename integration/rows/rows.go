// Package rows holds a list of what is promised to the tests that keep it, so that neither a test
// nor a promise goes without the other being looked at.
//
//	rows.Check(t, "testdata/rows.txt", "../..", nil)
//
// A list has a promise on each line, and after " | " the tests that hold it: DIRECTORY.TEST of this
// module, or what its user knows besides. A promise that nothing is to be built for says why, after
// "none: ". Lines that begin with # are comments.
package rows

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Check fails a test where a promise of a list names no test, or one that is not there. root is the
// module's directory, and other says of further names whether they are there; nil: there are none.
func Check(t *testing.T, list, root string, other func(name string) bool) {
	t.Helper()
	text, err := os.ReadFile(list)
	assert.OK(t, err)
	tests := map[string][]byte{} // of each directory
	for line := range strings.Lines(string(text)) {
		row, by, named := strings.Cut(strings.TrimSpace(line), " | ")
		if row == "" || row[0] == '#' || strings.HasPrefix(by, "none: ") {
			continue
		}
		assert.True(t, named && by != "", "nothing holds", row)
		for _, name := range strings.Fields(by) {
			dir, test, _ := strings.Cut(name, ".")
			if _, read := tests[dir]; !read {
				tests[dir] = testsOf(t, filepath.Join(root, dir))
			}
			is := other != nil && other(name) || bytes.Contains(tests[dir], []byte("\nfunc "+test+"("))
			assert.True(t, is, row, "is held by", name, "which there is not")
		}
	}
}

func testsOf(t *testing.T, dir string) (all []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	assert.OK(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		assert.OK(t, err)
		all = append(all, text...)
	}
	return all
}
