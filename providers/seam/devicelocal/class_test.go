package devicelocal

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// A new machine's memory is made when it is opened, and not by looking.
func TestClass(t *testing.T) {
	var r seam.Registry
	assert.OK(t, r.Register(Protocol, Class()))
	home := t.TempDir()
	s := seam.Settings{Home: home, Config: seam.Config{Err: fs.ErrNotExist}}
	p := r.Preview(t.Context(), s, seam.Capabilities{})
	assert.Equal(t, p.Grade, providers.Good, p.Text)
	assert.Contains(t, p.Text, filepath.Join(home, ".agentm", "memory")+", which will be made")
	assert.Equal(t, len(assert.Of(os.ReadDir(home)).OK(t)), 0, "entries that the preview made")

	b := assert.Of(r.Select(t.Context(), s, seam.Capabilities{})).OK(t)
	assert.OK(t, assert.ErrOf(b.Write(t.Context(), at(t, "_meta/repos.json"), "{}\n")))
	assert.OK(t, b.Close())
	assert.Of(os.ReadFile(filepath.Join(home, ".agentm", "memory", "_meta", "repos.json"))).Equal(t, []byte("{}\n"))
	p = r.Preview(t.Context(), s, seam.Capabilities{})
	assert.Equal(t, p.Text, `memory lies in "device-local" (nothing else is configured): files in `+filepath.Join(home, ".agentm", "memory"))
}

// TestLook names what is in the way.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	assert.OK(t, os.WriteFile(file, nil, 0o600))
	assert.OK(t, os.MkdirAll(filepath.Join(dir, "home", ".agentm"), 0o700))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "home", ".agentm", "memory"), nil, 0o600))
	for home, want := range map[string]string{"": "no home directory", "home": "no home directory", file: file, filepath.Join(dir, "home"): "memory is no directory"} {
		f := look(seam.Settings{Home: home})
		assert.True(t, f.Grade == providers.Bad && f.Do != "", home, "got", f.Says)
		assert.Contains(t, f.Says, want, home)
		_, err := Class().Open(t.Context(), seam.Settings{Home: home})
		assert.False(t, err == nil, home, "was opened")
	}
	if os.Geteuid() == 0 {
		return // root may write anywhere
	}
	for _, made := range []string{"new", filepath.Join("old", ".agentm", "memory")} {
		at := filepath.Join(dir, made)
		assert.OK(t, os.MkdirAll(at, 0o700))
		assert.OK(t, os.Chmod(at, 0o500))
	}
	assert.Equal(t, look(seam.Settings{Home: filepath.Join(dir, "new")}).Grade, providers.Bad, "cannot be made")
	assert.Equal(t, look(seam.Settings{Home: filepath.Join(dir, "old")}).Grade, providers.Less, "cannot be written")
}
