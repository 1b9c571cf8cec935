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
