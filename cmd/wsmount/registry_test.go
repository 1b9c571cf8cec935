package main

import (
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// A change that should have had a new version is said, and refused with --strict
// (AIP-34, Stable identity).
func TestAIP34AcceptStrict(t *testing.T) {
	w := newWorld(t)
	addr := w.workspace("notes")
	w.edit("notes/WORKSPACE.md", "acme-1", "acme-2")
	const says = "the owner changed, and the version is still 0.1.0"
	assert.Contains(t, w.ok("registry", "accept", addr, "--show"), says)
	for _, more := range []string{"--show", "--yes", "--json"} {
		w.refused(exit.Denied, says, "registry", "accept", addr, "--strict", more)
	}
	w.refused(exit.Denied, "accept", "resolve", addr)
	w.edit("notes/WORKSPACE.md", "0.1.0", "0.2.0")
	w.ok("registry", "accept", addr, "--strict", "--yes")
	w.ok("resolve", addr)
}

// A manifest that was added and says what the row does is no question (AIP-34, Backward
// compatibility).
func TestAIP34AddedManifestIsNoQuestion(t *testing.T) {
	w := newWorld(t)
	w.mkdir("files")
	w.config("workspaces: { \"@acme/row\": { path: " + w.path("files") + ", name: A row } }\n")
	w.ok("registry", "add", "files", "--id", "@acme/row")
	w.ok("init", "--from-row", "@acme/row")
	w.ok("resolve", "@acme/row")
	assert.Contains(t, w.ok("registry", "accept", "@acme/row"), `+name: "A row"`)
	assert.Contains(t, w.ok("registry", "accept", "@acme/row"), "nothing has changed")
}
