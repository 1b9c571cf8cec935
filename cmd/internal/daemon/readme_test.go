package daemon

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

// Who reads when it is has not read the manifest's vocabulary.
func TestWhen(t *testing.T) {
	for trigger, want := range map[mountspec.Trigger]string{
		"":            "never",
		"each-write":  "soon after each change",
		"per-commit":  "with each commit",
		"manual":      "not by you",
		"idle-90":     "after 1m30s of quiet",
		"per-turn":    `at "turn-end"`,
		"acme:review": `at "acme:review"`,
	} {
		assert.Contains(t, when(trigger), want, trigger)
	}
}

// The README says of each part what holds for it, and nothing that does not.
func TestReadme(t *testing.T) {
	for _, tt := range []struct {
		name     string
		source   Source
		has, not string
	}{
		{"directory", Source{Durability: "disk", Governing: []string{"WORKSPACE.md"}}, "cannot be changed from inside:\n    WORKSPACE.md\n", "volatile"},
		{"volatile", Source{Durability: "volatile: tmpfs"}, "Nothing of it is kept for good: it is volatile: tmpfs", "READ-ONLY"},
		{"read-only", Source{ReadOnly: "storage (STORAGE.md:3)"}, "READ-ONLY: storage (STORAGE.md:3).", "SENDING"},
		{"code project", Source{Durability: "disk", Code: &control.Code{Name: "render", Entry: "node main.js"}}, "CODE\n  The workspace is a code project: render; it is run as: node main.js.\n", "READ-ONLY"},
		{"unavailable", Source{Unavailable: "no such host"}, "Not available", "You may write"},
	} {
		if got := string((&part{Source: tt.source}).readme()); !strings.Contains(got, tt.has) || strings.Contains(got, tt.not) {
			t.Errorf("%s: want %q and not %q in\n%s", tt.name, tt.has, tt.not, got)
		}
	}
}
