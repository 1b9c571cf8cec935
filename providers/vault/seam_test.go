package vault_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// TestSeam: a vault is a place for memory, and keeps what it promises also to who has
// another cache directory.
func TestSeam(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		root := t.TempDir()
		t.Cleanup(func() { wantNoTemp(t, root) })
		again := func() seam.Conditional { return seam.New(open(t, root, t.TempDir())) }
		return seamtest.Proved{Conditional: again(), Proof: seamtest.Proof{Again: again, Put: func(key, content string) {
			assert.OK(t, os.WriteFile(filepath.Join(root, key), []byte(content), 0o644))
		}}}
	})
}
