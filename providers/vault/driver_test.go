package vault_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/vault"
)

// The driver opens what is granted, and no directory that took its name.
func TestDriver(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root, d := t.TempDir(), vault.Driver()
	var st unix.Stat_t
	ok(t, unix.Stat(root, &st))
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
		wantErr(t, c.name, err, c.want)
		if p == nil {
			continue
		}
		if err != nil {
			t.Errorf("%s: a provider beside the error", c.name)
		}
		if missing := p.Capabilities().Missing(d.Promises); missing != nil {
			t.Errorf("the driver promises more than the provider: %q", missing)
		}
		ok(t, p.Close())
	}
	entries, err := os.ReadDir(root)
	ok(t, err)
	if len(entries) != 0 {
		t.Errorf("opening made %v", entries)
	}
}
