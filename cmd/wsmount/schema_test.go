package main

import (
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

// Each manifest has a schema that names what this program mounts.
func TestSchema(t *testing.T) {
	w := newWorld(t)
	for _, name := range mountspec.Schemas() {
		var s struct {
			Title       string
			Definitions map[string]struct {
				Properties map[string]struct{ Enum []string }
			}
		}
		w.asJSON(&s, "schema", name)
		assert.True(t, s.Title != "", name)
		if name == "storage" {
			assert.Contains(t, w.ok("schema", name), `"memory"`)
			assert.True(t, len(s.Definitions["storage"].Properties["provider"].Enum) > 7, s)
		}
	}
	w.refused(exit.Usage, "lifecycle", "schema", "lifecycle")
	w.refused(exit.Usage, "argument", "schema")
}
