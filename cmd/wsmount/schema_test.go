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
	config := w.ok("schema", "config")
	assert.Contains(t, config, `"allow_overlap"`)
	assert.Contains(t, config, "Pairs of workspaces that may keep their files in one place")
	assert.Contains(t, w.ok("schema", "storage"), "Where commits go:")
	w.refused(exit.Usage, "wsmount: no schema of \"lifecycle\"", "schema", "lifecycle")
	w.refused(exit.Usage, "argument", "schema")
}
