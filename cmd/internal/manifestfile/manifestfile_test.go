package manifestfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A manifest is safe once it is made, overwrites none, and is taken away with the directories
// that were made for it and hold nothing else.
func TestWriteText(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a/b/WORKSPACE.md")
	undo := assert.Of(WriteText(name, []byte("one"))).OK(t)
	tier.OnDisk(t, name)
	assert.Equal(t, string(assert.Of(os.ReadFile(name)).OK(t)), "one")
	_, err := WriteText(name, []byte("two"))
	assert.Contains(t, err.Error(), "exists already")
	assert.Equal(t, exit.From(err).Code, exit.Failed)
	assert.Equal(t, string(assert.Of(os.ReadFile(name)).OK(t)), "one")
	assert.OK(t, os.WriteFile(filepath.Join(dir, "a/other"), nil, 0o600))
	undo()
	assert.Is(t, assert.ErrOf(os.Stat(filepath.Join(dir, "a/b"))), os.ErrNotExist)
	assert.OK(t, assert.ErrOf(os.Stat(filepath.Join(dir, "a/other"))))
}
