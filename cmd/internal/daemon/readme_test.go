package daemon

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

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
		got := string((&part{Source: tt.source}).readme())
		assert.True(t, strings.Contains(got, tt.has) && !strings.Contains(got, tt.not), tt.name, "want", tt.has, "and not", tt.not, "in", got)
	}
	p := &part{Source: Source{Durability: "disk"}}
	p.access.Store(&fs.Access{ReadOnly: "policy (condition-failed)"})
	got := string(p.readme())
	assert.True(t, strings.Contains(got, "READ-ONLY: policy (condition-failed).") && !strings.Contains(got, "SENDING"), "read-only for now:", got)
}

// A part tells of what is mounted right inside it.
func TestNested(t *testing.T) {
	at := func(name, at string) *part { return &part{Source: Source{Name: name, At: at}} }
	root, lib, deep, other, gone := at("@acme/app", ""), at("@acme/lib", "lib"), at("@acme/deep", "lib/a/deep"), at("@acme/other", "library"), at("unavailable", "gone")
	deep.ReadOnly, gone.Unavailable = "mount", "no such host"
	nest([]*part{root, lib, deep, other, gone})
	assert.Contains(t, string(root.readme()), "WORKSPACES INSIDE\n  lib/ is @acme/lib\n  library/ is @acme/other\n  gone/ is not available\n  Each has")
	assert.Contains(t, string(lib.readme()), "WORKSPACES INSIDE\n  a/deep/ is @acme/deep, read-only\n  Each has")
	assert.True(t, !strings.Contains(string(deep.readme()), "INSIDE"), "nothing is in the deepest")
	root.access.Store(&fs.Access{Closed: "policy"})
	assert.True(t, !strings.Contains(string(root.readme()), "@acme/lib"), "of a closed part nothing is told")
	assert.Equal(t, len(root.status(nil, 0).Inside().Nested), 0, "of a closed part nothing is told")
}
