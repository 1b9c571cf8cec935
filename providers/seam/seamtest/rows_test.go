package seamtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/rows"
)

// TestRows: what each row of the descriptions is held by is there.
func TestRows(t *testing.T) {
	rows.Check(t, "testdata/rows.txt", "../../..", func(name string) bool {
		check, is := strings.CutPrefix(name, "check:")
		return is && slices.ContainsFunc(Checks(), func(c Check) bool { return c.Name == check })
	})
}
