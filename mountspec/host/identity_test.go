package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Each test names what a hostile author, or another user of the machine,
// tries.

func TestManifestLiesAboutItself(t *testing.T) {
	w := newWorld(t)
	w.workspace("evil", "@evil/ops")
	w.config = "workspaces: { \"@acme/ops\": " + w.path("evil") + " }\n"
	w.refused("@acme/ops", ResolveOptions{}, Denied, "says that it is @evil/ops")

	w.workspace("ws", "@acme/ops")
	w.config = "workspaces: { \"@acme/ops\": { path: " + w.path("ws") + ", owner_id: 01HQ } }\n"
	w.refused("@acme/ops", ResolveOptions{}, Denied, "its owner.id is not the one that was registered for @acme/ops")
	w.config = "workspaces: { \"@acme/ops\": { path: " + w.path("ws") + ", owner_id: ID-acme } }\n"
	assert.Equal(t, w.ok("@acme/ops", ResolveOptions{}).Trust, Registered)

	w.workspace("clone", "@acme/ops") // which takes a registered id
	for _, o := range []ResolveOptions{{}, {Trust: true}} {
		w.refused("clone", o, Denied, "it calls itself @acme/ops, which is registered as "+w.path("ws"))
	}
	w.edit("ws/WORKSPACE.md", "slug: acme", "slug: evil")
	w.refused("ws", ResolveOptions{Trust: true}, Invalid)
}

func TestTwoRegistrations(t *testing.T) {
	w := newWorld(t)
	w.workspace("a", "@acme/ops")
	w.add("a")
	w.workspace("b", "@acme/ops")
	w.config = "workspaces: { \"@acme/ops\": " + w.path("b") + " }\n"
	w.refused("@acme/ops", ResolveOptions{}, Denied, "two manifests are registered as @acme/ops: ", w.path("a"), w.path("b"))
	w.config = "workspaces: { \"@acme/ops\": " + w.path("a/WORKSPACE.md") + " }\n"
	w.ok("@acme/ops", ResolveOptions{})
}

func TestSymlinkedManifest(t *testing.T) {
	w := newWorld(t)
	w.workspace("victim", "@acme/ops")
	w.mkdir("evil")
	assert.OK(t, os.Symlink(w.path("victim/WORKSPACE.md"), w.path("evil/WORKSPACE.md")))
	w.refused("evil", ResolveOptions{Trust: true}, Unresolvable, "symbolic link")
	w.config = "search_path: [ " + w.dir + "/evil ]\n"
	w.refused("@acme/ops", ResolveOptions{}, Unresolvable, "no workspace")
}

func TestRegisteredByPathAloneMustBeSafe(t *testing.T) {
	w := newWorld(t)
	p := w.workspace("ws", "@acme/ops")
	w.config = "workspaces: { \"@acme/ops\": " + w.path("ws") + " }\n"
	assert.OK(t, os.Chmod(p, 0o666))
	w.refused("@acme/ops", ResolveOptions{}, Denied, "not trusted")
	assert.OK(t, os.Chmod(p, 0o600))
	assert.OK(t, os.Chmod(w.path("ws"), 0o777))
	w.refused("@acme/ops", ResolveOptions{}, Denied, "not trusted")
}

func TestSearchPath(t *testing.T) {
	w := newWorld(t)
	w.config = "search_path: [ " + w.path("s") + ", " + w.path("none") + " ]\n"
	w.workspace("s/one", "@acme/one")
	w.workspace("s/acme/two", "@acme/two")
	w.workspace("s/one/nested", "@acme/nested")
	w.workspace("s/x/y/deep", "@acme/deep")
	w.workspace("s/open", "@acme/open")
	assert.OK(t, os.Chmod(w.path("s/open"), 0o777))
	w.workspace("outside", "@acme/linked")
	assert.OK(t, os.Symlink(w.path("outside"), w.path("s/linked")))
	w.workspace("outside2", "@acme/linked2")
	assert.OK(t, os.Symlink(w.path("outside2"), w.path("s/acme/linked2")))
	w.write("s/broken/WORKSPACE.md", "---\nid: [\n---\n")
	for _, c := range []struct {
		name, addr, found string // found empty: not found
	}{
		{"below", "@acme/one", "s/one"},
		{"by owner and slug", "@acme/two", "s/acme/two"},
		{"below a workspace", "@acme/nested", ""},
		{"too deep", "@acme/deep", ""},
		{"in a directory that others can write", "@acme/open", ""},
		{"behind a link", "@acme/linked", ""},
		{"behind a link, by owner and slug", "@acme/linked2", ""},
		{"not there", "@acme/none", ""},
		{"a path built of an address", "@acme/broken", ""},
	} {
		if c.found == "" {
			w.refused(c.addr, ResolveOptions{}, Unresolvable, "no workspace")
			continue
		}
		got := w.ok(c.addr, ResolveOptions{})
		assert.True(t, got.Root == w.path(c.found) && !got.Verified, c.name, got.Root, "verified", got.Verified)
	}
	w.workspace("s/copy", "@acme/one")
	w.refused("@acme/one", ResolveOptions{}, Denied, "2 manifests call themselves @acme/one: ", w.path("s/one/WORKSPACE.md"), w.path("s/copy/WORKSPACE.md"))
	assert.OK(t, os.Chmod(w.path("s"), 0o777))
	w.refused("@acme/two", ResolveOptions{}, Unresolvable)
}

// What a search path finds below a workspace is that workspace's content.
func TestDirectoryThatIsAWorkspace(t *testing.T) {
	for searched, ws := range map[string]string{"ws": "ws", "s": "s/acme"} {
		t.Run(searched, func(t *testing.T) {
			w := newWorld(t)
			w.config = "search_path: [ " + w.path(searched) + " ]\n"
			w.workspace(ws, "@acme/top")
			w.workspace(ws+"/below", "@acme/below")
			w.ok("@acme/top", ResolveOptions{})
			w.refused("@acme/below", ResolveOptions{}, Unresolvable)
		})
	}
}

// A manifest that was only found gets nothing of the owner that it names.
func TestFoundIsNotRegistered(t *testing.T) {
	w := newWorld(t)
	w.config = "search_path: [ " + w.path("s") + " ]\nallow_paths: [ " + w.mkdir("srv") + " ]\n"
	w.manifest("s/clone", "@acme/clone", at(w.path("srv")))
	w.refused("@acme/clone", ResolveOptions{}, Denied, "not registered")
	w.add("s/clone")
	w.ok("@acme/clone", ResolveOptions{})
}

func TestAgentproto(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops")
	w.workspace("old", "@acme/bare")
	reg := func(text string) { w.write("home/.agentproto/workspaces.json", text) }
	reg(`{"version":1,"active":null,"workspaces":[{"slug":"@acme/ops","path":"` + w.path("ws") + `","addedAt":"x"},{"slug":"bare","path":"` + w.path("old") + `"},{"slug":"rel","path":"../ws"}]}`)
	got := w.ok("@acme/ops", ResolveOptions{})
	assert.True(t, !got.Verified && got.Root == w.path("ws"), got)
	w.ok("@acme/bare", ResolveOptions{})
	w.refused("@evil/bare", ResolveOptions{}, Denied, "says that it is @acme/bare")
	w.refused("@acme/rel", ResolveOptions{}, Unresolvable)
	w.refused("@acme/none", ResolveOptions{}, Unresolvable)
	reg(`{"version":1,"workspaces":[{"slug":"@acme/ops","path":"` + w.path("ws") + `"},{"slug":"ops","path":"` + w.path("old") + `"}]}`)
	w.refused("@acme/ops", ResolveOptions{}, Denied, "two workspaces")
	reg(`{"version":2}`)
	w.refused("@acme/ops", ResolveOptions{}, Unresolvable, "version 1")
	reg(`{"version":1}`)
	assert.OK(t, os.Chmod(w.path("home/.agentproto/workspaces.json"), 0o666))
	w.refused("@acme/ops", ResolveOptions{}, Denied, "not trusted")
}

func TestNearAddress(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/marketing-ops")
	w.add("ws")
	e := w.refused("@acme/marketing-op", ResolveOptions{}, Unresolvable)
	assert.True(t, e.Hint == "did you mean @acme/marketing-ops?", "hint", e.Hint)
	w.workspace("found/team-notes", "@acme/team-notes")
	w.config += "search_path: [ " + w.path("found") + " ]\n"
	e = w.refused("@acme/team-nodes", ResolveOptions{}, Unresolvable)
	assert.True(t, e.Hint == "did you mean @acme/team-notes?", "hint for what the search path has:", e.Hint)
	w.refused("@acme/../../etc", ResolveOptions{}, Unresolvable)
	w.refused("@Acme/Ops", ResolveOptions{}, Unresolvable)
}

// The attack: the directory is exchanged for a link after it was granted.
func TestLocalRootIsWhatItIsNotWhatItIsCalled(t *testing.T) {
	w := newWorld(t)
	w.mkdir("secret")
	w.mkdir("ws")
	assert.OK(t, os.Symlink(w.path("secret"), w.path("ws/data")))
	w.manifest("ws", "@acme/ops", here)
	w.refused("ws", ResolveOptions{}, Denied, w.path("secret"))
	w.refused("ws", ResolveOptions{Trust: true}, Denied, "allow_paths")
}

func TestLocalPaths(t *testing.T) {
	for _, c := range []struct {
		name, path string // below the world's directory
		listed     bool   // srv is in allow_paths
		trust      bool
		class      Class // of the refusal; 0: granted
	}{
		{name: "own directory", path: "ws/data"},
		{name: "own directory itself", path: "ws"},
		{name: "sibling", path: "other", trust: true, class: Denied},
		{name: "sibling that begins alike", path: "ws-evil", trust: true, class: Denied},
		{name: "listed, not registered", path: "srv/x", listed: true, class: Denied},
		{name: "listed", path: "srv/x", listed: true, trust: true},
		{name: "beside what is listed", path: "srv-evil", listed: true, trust: true, class: Denied},
		{name: "system", path: "/etc", trust: true, class: Denied},
		{name: "absent", path: "ws/none", class: Unresolvable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.listed {
				w.config = "allow_paths: [ " + w.path("srv") + " ]\n"
			}
			for _, d := range []string{"ws/data", "other", "ws-evil", "srv/x", "srv-evil"} {
				w.mkdir(d)
			}
			path := c.path
			if !filepath.IsAbs(path) {
				path = w.path(path)
			}
			w.manifest("ws", "@acme/ops", at(path))
			if c.class != 0 {
				w.refused("ws", ResolveOptions{Trust: c.trust}, c.class)
				return
			}
			assert.Equal(t, w.ok("ws", ResolveOptions{Trust: c.trust}).Local.Path, path)
		})
	}
}
