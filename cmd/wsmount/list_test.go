package main

import (
	"path/filepath"
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
	w.workspace("lib")
	w.mkdir("notes/lib")
	w.ok(addr, "mnt", "--mount", "at=/lib,source=@acme/lib")
	w.edit("broken/WORKSPACE.md", "name:", "tags: [ x ]\npublish: { template: true, visibility: unlisted }\nname:")
	w.write("pulls/WORKSPACE.md", "---\nschema: workspace/v1\nid: \"@me/pulls\"\nversion: 1.0.0\nname: Pulls\nowner: { type: user, id: me-1, slug: me }\n"+
		"identity: [ { name: Bob, email: bob@acme.test } ]\nstorage: { inline: { provider: github, config: { owner: me, repo: pulls, branch: main }, sync: { push: { branch_policy: per-turn, pr_policy: auto } } } }\n---\n")
	w.ok("registry", "add", w.path("pulls"))

	shown := w.ok("list")
	assert.Contains(t, shown, "  "+addr+"   local-fs  "+w.path("mnt")+"\n", shown)
	assert.Contains(t, shown, "! @acme/broken", shown)
	assert.Contains(t, shown, "not mounted (template, unlisted)\n")
	assert.Contains(t, shown, "! @me/pulls")
	assert.Contains(t, shown, "a pull request needs credentials")
	assert.Contains(t, shown, w.path("mnt/lib")+"\n")
	assert.Contains(t, shown, "wsmount registry accept @acme/broken", "the hint")
	assert.Equal(t, w.ok("list", "-q"), "@acme/broken\n@acme/lib\n"+addr+"\n@me/pulls\n")
	assert.Equal(t, w.ok("list", "-q", "--tag", "x"), "@acme/broken\n")
	assert.Equal(t, w.ok("list", "-q", "--tag", "x", "--tag", "y"), "")
	assert.Equal(t, w.ok("list", "-q", "--owner", "you"), "")
	var out workspacesJSON
	w.asJSON(&out, "list", "--owner", "@acme")
	assert.Equal(t, len(out.Workspaces), 3)
	got := out.Workspaces[2]
	assert.Slice(t, got.Mountpoints, []string{w.path("mnt")}, "mountpoints")
	assert.Equal(t, got.Path+" "+got.Trust+" "+got.Provider+" "+got.Problem, w.path("notes/WORKSPACE.md")+" registered local-fs ")
	w.ok("umount", "mnt")
	assert.Contains(t, w.ok("list"), "not mounted")
}

// A directory is searched as find -maxdepth 2 does, whatever is registered.
func TestFind(t *testing.T) {
	w := newWorld(t)
	w.workspace("notes")
	w.write("bad/WORKSPACE.md", "none\n")
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
	w.edit("app/WORKSPACE.md", "name:", "code: { file: ./CODE.md }\nname:")
	w.ok("registry", "accept", addr, "--yes")
	w.mount(addr, "mnt")
	const says = "render; it is run as: node main.js"
	assert.Contains(t, w.ok("list"), "(code)")
	assert.Contains(t, w.ok("list", "--json"), `"entry": "node main.js"`)
	for _, out := range []string{w.ok("resolve", addr), w.shown("mnt"), w.read("mnt/.wsmount/README")} {
		assert.Contains(t, out, says)
	}
	w.write("app/CODE.md", "---\nschema: code/v2\nid: \"@acme/code/render\"\nversion: 2.0.0\nname: Render\nrun: node main.js\n---\n")
	w.ok("registry", "accept", addr, "--yes")
	assert.Contains(t, w.ok("resolve", addr), "Render (@acme/code/render) 2.0.0; it is run as: node main.js")
}
