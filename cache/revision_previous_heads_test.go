package cache

import (
	"io"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// What ours began from can be read in each of a repository's conflicts, though no
// head has it any more: in an earlier revision.
func TestBaseOfAConflictInARepository(t *testing.T) {
	for _, c := range []struct {
		name   string
		commit bool
		theirs func(c *clone)
	}{
		{"not committed", false, func(c *clone) { c.there("d/f", "theirs") }},
		{"committed", true, func(c *clone) { c.there("d/f", "theirs") }},
		{"two pulls later", false, func(c *clone) { c.there("d/f", "theirs"); c.pull(); c.there("d/f", "again") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newClone(t, seeded(t, "d/f", "base", "d/g", "x", "e", "1"), held(Manual))
			w.ok(w.put("d/f", "ours"))
			if c.commit {
				w.commit()
			}
			c.theirs(w)
			w.pull()
			for range 2 {
				all := w.v.Conflicts()
				if len(all) != 1 || all[0].Path != "d/f" {
					t.Fatalf("conflicts %+v", all)
				}
				body, err := w.v.ConflictContent(t.Context(), "d/f", SideBase)
				assert.OK(t, err)
				text, err := io.ReadAll(body)
				if err != nil || string(text) != "base" {
					t.Errorf("got %q, %v", text, err)
				}
				w.ok(body.Close())
				w.killed()
			}
		})
	}
}

// Where the whole tree is meant, an error says so.
func TestNoConflictAtTheRoot(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"", "/"} {
		if _, err := w.v.ConflictContent(t.Context(), path, SideBase); err == nil || !strings.HasPrefix(err.Error(), `"/": `) {
			t.Errorf("of %q: %v", path, err)
		}
	}
}
