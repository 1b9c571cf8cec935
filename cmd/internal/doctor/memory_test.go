package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

// TestMemory says what selection says, byte for byte where it refuses, and makes nothing.
func TestMemory(t *testing.T) {
	home := t.TempDir()
	config := func(text string) seam.Config { return seam.Config{Name: "c.json", Text: []byte(text)} }
	for name, c := range map[string]struct {
		config   seam.Config
		required seam.Capabilities
		code     exit.Code
	}{
		"a new machine":      {config: seam.Config{Err: fs.ErrNotExist}},
		"missing promises":   {seam.Config{Err: fs.ErrNotExist}, seam.Capabilities{Sync: true}, exit.Failed},
		"an unknown backend": {config(`{"storage.backend": "redis"}`), seam.Capabilities{}, exit.Failed},
		"no JSON":            {config(`{`), seam.Capabilities{}, exit.Manifest},
		"no string":          {config(`{"storage.backend": 1}`), seam.Capabilities{}, exit.Manifest},
		"one not to be read": {seam.Config{Name: "c.json", Err: fs.ErrPermission}, seam.Capabilities{}, exit.Manifest},
	} {
		s := seam.Settings{Home: home, Config: c.config}
		got := Memory(t.Context(), all.Backends(), s, c.required)
		assert.Equal(t, Worst([]Check{got}), c.code, name)
		assert.False(t, exists(filepath.Join(home, ".agentm")), name, "something was made")
		if c.code == exit.Done {
			assert.Equal(t, got.Level, OK, name)
			continue
		}
		_, err := all.Backends().Select(t.Context(), s, c.required)
		var refusal *seam.SelectionError
		assert.True(t, errors.As(err, &refusal) && got.Says == err.Error() && got.Do == refusal.Do, name, "doctor:", got.Says, "select:", err)
	}
}

// TestPromises: each part that is there is asked, and not the root's alone.
func TestPromises(t *testing.T) {
	tree := &daemon.Tree{Sources: []daemon.Source{
		{Name: "@a/git", Provider: "github", Mode: "pull-push", Cached: true}, {Name: "@a/dir", At: "lib", Provider: "dev-local", Path: "/none"}, {Name: "@a/gone", At: "gone", Unavailable: "it is away"},
	}}
	assert.Equal(t, len(Promises(t.Context(), tree, seam.Capabilities{})), 0, "checks of nothing")
	var got []string
	for _, c := range Promises(t.Context(), tree, seam.Capabilities{ConflictFiles: true}) {
		got = append(got, string(c.Level)+" "+c.Name+": "+c.Says)
	}
	assert.Slice(t, got, []string{"ok promises /: @a/git promises conflict_files", "problem promises /lib: @a/dir does not promise conflict_files"})
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
