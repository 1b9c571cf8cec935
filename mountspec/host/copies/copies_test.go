package copies

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestReplace(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "acme", "site")
	has := func(want map[string]string) {
		t.Helper()
		got := map[string]string{}
		assert.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			tier.OnDisk(t, path)
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(root, path)
			got[rel] = string(text)
			st, _ := d.Info()
			assert.Equal(t, st.Mode(), fs.FileMode(0o400), path)
			return err
		}))
		assert.True(t, maps.Equal(got, want), got)
	}
	assert.OK(t, Replace(dir, map[string]string{"WORKSPACE.md": "a", "storage/main.STORAGE.md": "b"}))
	has(map[string]string{"acme/site/WORKSPACE.md": "a", "acme/site/storage/main.STORAGE.md": "b"})
	assert.OK(t, Replace(dir, map[string]string{"WORKSPACE.md": "c"}))
	has(map[string]string{"acme/site/WORKSPACE.md": "c"})
	for _, outside := range []string{"../x", "/x", "a/../../x"} {
		assert.Is(t, Replace(dir, map[string]string{"WORKSPACE.md": "d", outside: "e"}), fs.ErrInvalid)
	}
	has(map[string]string{"acme/site/WORKSPACE.md": "c"})
	assert.OK(t, Remove(dir))
	assert.OK(t, Remove(dir))
	has(map[string]string{})
}
