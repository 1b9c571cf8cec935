package notes_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/notes"
)

// What is noted is in the file when it returns, is written when it is news alone, and goes
// with the last of it.
func TestNotes(t *testing.T) {
	path, written := filepath.Join(t.TempDir(), "branches.json"), 0
	var fails error
	write := func(path, text string) error {
		if written++; fails != nil {
			return fails
		}
		return os.WriteFile(path, []byte(text), 0o600)
	}
	all := assert.Of(notes.Read(path, write)).OK(t)
	noon := time.Unix(1e9, 0).UTC()
	change := func(do func(n *notes.Note), writes int) {
		t.Helper()
		assert.OK(t, all.Change("topic", do))
		assert.Equal(t, written, writes, "written")
		again := assert.Of(notes.Read(path, write)).OK(t)
		a, b := all.Of("topic"), again.Of("topic")
		assert.True(t, a.Pushed == b.Pushed && a.Wanted.Equal(b.Wanted) && (a.Refused == nil) == (b.Refused == nil), a, b)
	}
	change(func(n *notes.Note) { n.Want(noon) }, 1)
	change(func(n *notes.Note) { n.Want(noon.Add(1)) }, 1)
	assert.Equal(t, all.Of("topic").Wanted, noon, "since the first")
	change(func(n *notes.Note) { n.Refuse(providers.Refusal{Code: "x", Since: noon}) }, 2)
	change(func(n *notes.Note) { n.Refuse(providers.Refusal{Code: "x", Since: noon.Add(1)}) }, 3)
	assert.Equal(t, all.Of("topic").Refused.Since, noon, "since the first")
	change(func(n *notes.Note) { *n = notes.Note{} }, 4)
	assert.Equal(t, string(assert.Of(os.ReadFile(path)).OK(t)), "{}\n")
	fails = errors.New("disk")
	assert.Is(t, all.Change("topic", func(n *notes.Note) { n.Pushed = "c" }), fails)
}
