package pins

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What is at a pinned path and below it is held, also by whoever loads the pins later.
func TestPins(t *testing.T) {
	dir := t.TempDir()
	load := func() *Set {
		s := assert.Of(Load(dir)).OK(t)
		return s
	}
	s := load()
	assert.False(t, s.Holds("docs"), "nothing is pinned yet")
	for _, path := range []string{"docs", "a/b.md", "docs", "w\xff"} {
		assert.OK(t, s.Add(path))
		tier.OnDisk(t, filepath.Join(dir, fileName))
	}
	for path, want := range map[string]bool{"docs": true, "docs/x/y": true, "docs2": false, "doc": false, "a": false, "a/b.md": true, "": false, "w\xff": true, "w\xfe": false, "w\ufffd": false} {
		assert.Equal(t, s.Holds(path), want, path)
		assert.Equal(t, load().Holds(path), want, path)
	}
	for _, want := range []bool{true, false} {
		was := assert.Of(s.Remove("docs")).OK(t)
		assert.Equal(t, was, want)
	}
	assert.Slice(t, load().List(), []string{"a/b.md", "w\xff"})
	assert.OK(t, s.Add(""))
	assert.True(t, s.Holds("any/thing") && s.Holds(""), "all is pinned")
	assert.OK(t, os.WriteFile(filepath.Join(dir, fileName), []byte("{"), 0o600))
	_, err := Load(dir)
	assert.True(t, err != nil, "pins that cannot be read are none")
	var none *Set
	assert.True(t, !none.Holds("a") && none.List() == nil, "a set may be nil")
}
