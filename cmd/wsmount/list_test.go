package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What the host can mount is listed with where it is mounted, and what cannot be says
// why; --tag and --owner choose, --quiet is for programs.
func TestList(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	assert.Contains(t, w.ok("list"), "no workspace is known")
	addr := w.workspace("notes")
	w.workspace("broken")
	manifest := w.path("broken/WORKSPACE.md")
	w.ok(addr, "mnt")
	text, err := os.ReadFile(manifest)
	assert.OK(t, err)
	assert.OK(t, os.WriteFile(manifest, []byte(strings.Replace(string(text), "name:", "tags: [ x ]\nname:", 1)), 0o600))

	shown := w.ok("list")
	assert.Contains(t, shown, "  "+addr+"   local-fs  "+w.path("mnt")+"\n", shown)
	assert.Contains(t, shown, "! @acme/broken", shown)
	assert.Contains(t, shown, "wsmount registry accept @acme/broken", "the hint")
	assert.Equal(t, w.ok("list", "-q"), "@acme/broken\n"+addr+"\n")
	assert.Equal(t, w.ok("list", "-q", "--tag", "x"), "@acme/broken\n")
	assert.Equal(t, w.ok("list", "-q", "--tag", "x", "--tag", "y"), "")
	assert.Equal(t, w.ok("list", "-q", "--owner", "you"), "")
	var out workspacesJSON
	assert.OK(t, json.Unmarshal([]byte(w.ok("list", "--json", "--owner", "@acme")), &out))
	assert.Equal(t, len(out.Workspaces), 2)
	got := out.Workspaces[1]
	assert.Slice(t, got.Mountpoints, []string{w.path("mnt")}, "mountpoints")
	assert.Equal(t, got.Path+" "+got.Trust+" "+got.Provider+" "+got.Problem, w.path("notes/WORKSPACE.md")+" registered local-fs ")
	w.ok("umount", "mnt")
	assert.Contains(t, w.ok("list"), "not mounted")
}

// A directory is searched as find -maxdepth 2 does, whatever is registered.
func TestFind(t *testing.T) {
	w := newWorld(t)
	w.workspace("notes")
	assert.OK(t, os.MkdirAll(w.path("bad"), 0o700))
	assert.OK(t, os.WriteFile(w.path("bad/WORKSPACE.md"), []byte("none\n"), 0o600))
	shown := w.ok("find", w.dir)
	assert.Contains(t, shown, "@acme/notes", shown)
	assert.Contains(t, shown, "! "+filepath.Join(w.dir, "bad", "WORKSPACE.md"), shown)
	assert.Contains(t, w.ok("find", w.path("bad/..")), "@acme/notes")
	w.refused(exit.Unresolvable, "nowhere", "find", w.path("nowhere"))
	assert.Contains(t, w.ok("find", t.TempDir()), "no WORKSPACE.md")
}

// A workspace with a CODE.md says so wherever one looks (AIP-34, Workspace as repo).
func TestCodeProject(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("app")
	w.write("app/CODE.md", "---\nkind: code-workspace\nname: render\ncode: { sources: [ { inline: { path: main.js, content: x } } ] }\nrun: [ node, main.js ]\n---\n")
	text, err := os.ReadFile(w.path("app/WORKSPACE.md"))
	assert.OK(t, err)
	w.write("app/WORKSPACE.md", strings.Replace(string(text), "name:", "code: { file: ./CODE.md }\nname:", 1))
	w.ok("registry", "accept", addr, "--yes")
	w.mount(addr, "mnt")
	const says = "render; it is run as: node main.js"
	assert.Contains(t, w.ok("list"), "(code)")
	assert.Contains(t, w.ok("list", "--json"), `"entry": "node main.js"`)
	assert.Contains(t, w.ok("resolve", addr), says)
	assert.Contains(t, w.ok("status", "mnt"), says)
	readme, err := os.ReadFile(w.path("mnt/.wsmount/README"))
	assert.OK(t, err)
	assert.Contains(t, string(readme), says)
}
