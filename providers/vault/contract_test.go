package vault_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
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
	p, err := vault.Open(t.Context(), root, vault.Options{Locks: locks})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// wantNoTemp looks at the disk itself, where a listing would hide leftovers.
func wantNoTemp(t providertest.T, root string) {
	t.Helper()
	filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") && filepath.Base(path) != "a.tmp" {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
}
