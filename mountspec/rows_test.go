package mountspec

import (
	"testing"

	"github.com/wsmount/wsmount/integration/rows"
)

// TestRows: what each row of AIP-34 and AIP-38 is held by is there.
func TestRows(t *testing.T) { rows.Check(t, "testdata/rows.txt", "..", nil) }
