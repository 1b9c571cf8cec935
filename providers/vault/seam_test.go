package vault_test

import (
	"testing"

	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// TestSeam: a vault is a place for memory.
func TestSeam(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		root := t.TempDir()
		t.Cleanup(func() { wantNoTemp(t, root) })
		return seam.New(open(t, root, t.TempDir()))
	})
}
