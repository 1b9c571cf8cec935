package cache

import (
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
				assert.Must(t, len(all) == 1 && all[0].Path == "d/f", "conflicts", all)
				w.side("d/f", SideBase, "base")
				w.killed()
			}
		})
	}
}

// Where the whole tree is meant, an error says so.
func TestNoConflictAtTheRoot(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"", "/"} {
		_, err := w.v.ConflictContent(t.Context(), path, SideBase)
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), `"/": `), "of", path, err)
	}
}
