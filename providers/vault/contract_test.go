package vault_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
	"github.com/wsmount/wsmount/providers/vault"
)

func TestContract(t *testing.T) {
	providertest.Run(t, func(t providertest.T) providers.Provider {
		root := t.TempDir()
		t.Cleanup(func() { wantNoTemp(t, root) })
		return open(t, root, t.TempDir())
	})
}

// open opens a vault whose lock is in a directory of the test's own.
func open(t providertest.T, root, locks string) *vault.Provider {
	t.Helper()
	return assert.Of(vault.Open(t.Context(), root, vault.Options{Locks: locks})).OK(t)
}

// wantNoTemp looks at the disk itself, where a listing would hide leftovers.
func wantNoTemp(t providertest.T, root string) {
	t.Helper()
	filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		assert.False(t, strings.HasSuffix(path, ".tmp") && filepath.Base(path) != "a.tmp", "left behind", path)
		return err
	})
}

// A vault is a place for memory, and keeps what it promises also to who has another cache
// directory.
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
