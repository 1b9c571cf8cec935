package vault_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/vault"
)

// The driver opens what is granted, and no directory that took its name.
func TestDriver(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root, d := t.TempDir(), vault.Driver()
	var st unix.Stat_t
	assert.OK(t, unix.Stat(root, &st))
	granted := fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	for _, c := range []struct {
		name   string
		config map[string]string
		want   error
	}{
		{"plain", map[string]string{"vault_path": root}, nil},
		{"granted", map[string]string{"vault_path": root, "granted": granted}, nil},
		{"replaced", map[string]string{"vault_path": t.TempDir(), "granted": granted}, providers.ErrPermission},
		{"nothing", nil, providers.ErrInvalid},
		{"misspelt", map[string]string{"vault_path": root, "vaultpath": root}, providers.ErrInvalid},
		{"not there", map[string]string{"vault_path": filepath.Join(root, "no")}, providers.ErrNotExist},
	} {
		p, err := d.Open(t.Context(), providers.Settings{Config: c.config})
		assert.Is(t, err, c.want, c.name)
		if p == nil {
			continue
		}
		assert.True(t, err == nil, c.name, "a provider beside the error")
		missing := p.Capabilities().Missing(d.Promises)
		assert.True(t, missing == nil, "the driver promises more than the provider", missing)
		assert.OK(t, p.Close())
	}
	entries := assert.Of(os.ReadDir(root)).OK(t)
	assert.Equal(t, len(entries), 0, "opening made", entries)
}
