package main

import (
	"strings"
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

// A workspace that is registered gets the default manifest of its row, or of its directory
// (AIP-34, Backward compatibility: on creation, write a default WORKSPACE.md).
func TestAIP34AddWritesManifest(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"files", "plain", "other"} {
		w.mkdir(dir)
	}
	w.config("workspaces: { \"@acme/row\": { path: " + w.path("files") + ", name: A row, owner_id: acme-1, tags: [ x ] } }\n")
	w.ok("registry", "add", "files", "--id", "@acme/row", "--write-manifest")
	w.ok("registry", "add", "plain", "--id", "@acme/plain", "--write-manifest")
	for dir, name := range map[string]string{"files": "A row", "plain": "plain"} {
		w.ok("validate", "--strict", w.path(dir))
		assert.Contains(t, strings.ReplaceAll(w.read(dir+"/WORKSPACE.md"), `"`, ""), "name: "+name+"\n")
	}
	for _, addr := range []string{"@acme/row", "@acme/plain"} {
		w.ok("resolve", addr)
		assert.Contains(t, w.ok("registry", "accept", addr), "nothing has changed")
		assert.Equal(t, w.ownerIDs()[addr], "acme-1", "owner of", addr)
	}
	w.refused(exit.Failed, "exists already", "registry", "add", "plain", "--id", "@acme/plain", "--write-manifest")
	w.refused(exit.Usage, "--id", "registry", "add", "other", "--write-manifest")
	w.refused(exit.Usage, "directory", "registry", "add", "nowhere", "--id", "@acme/x", "--write-manifest")
	w.refused(exit.Denied, "two owners", "registry", "add", "other", "--id", "@acme/other", "--owner-id", "ANOTHER", "--write-manifest")
	w.refused(exit.Denied, "in the host configuration", "registry", "add", "other", "--id", "@acme/row", "--write-manifest")
	assert.Equal(t, w.files("other"), "", "what was left behind")
}
