package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// What a mount wrote to a service is there for the next mount, and for others.
func TestServiceOutlivesMounts(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	s := w.Service()
	dir := w.Mkdir("ws", 0o755)
	w.Write("config/wsmount/config.yaml", "allow_paths: [ "+filepath.Dir(s.Socket)+" ]\n", 0o600)
	w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/kept", s.Storage("")+"\n"), 0o644)
	w.MustRun("registry", "add", dir)
	m := w.Mount("@acme/kept")
	assert.OK(t, os.WriteFile(filepath.Join(m.Dir, "file"), []byte("kept"), 0o644))
	m.Stop()
	c, err := memory.DialControl(t.Context(), "unix", s.Socket)
	assert.OK(t, err)
	if got, err := c.Dump(t.Context()); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], `"file" file 4`) {
		t.Errorf("dump: %q, %v", got, err)
	}
	assert.OK(t, c.Tamper(t.Context(), providers.MustLocator("other"), []byte("theirs")))
	m.Start()
	for name, want := range map[string]string{"file": "kept", "other": "theirs"} {
		// What others did before the mount is seen as soon as what they do later.
		harness.Eventually(t, name+" is there", func() bool {
			got, err := os.ReadFile(filepath.Join(m.Dir, name))
			return err == nil && string(got) == want
		})
	}
}
