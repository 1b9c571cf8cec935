package main

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/registered"
	"github.com/wsmount/wsmount/integration/assert"
)

// ownerIDs are those of the registered workspaces, by address.
func (w *world) ownerIDs() map[string]string {
	w.t.Helper()
	var list struct{ Workspaces []registered.Entry }
	w.asJSON(&list, "registry", "list")
	ids := map[string]string{}
	for _, e := range list.Workspaces {
		ids[e.Address] = e.OwnerID
	}
	return ids
}

// One owner has one id, so a second workspace of his is no second owner.
func TestInitReusesTheOwnersID(t *testing.T) {
	w := newWorld(t)
	w.ok("init", "a", "--id", "@me/a", "--register")
	w.ok("init", "b", "--id", "@me/b", "--register")
	w.ok("init", "c", "--id", "@you/c", "--register")
	ids := w.ownerIDs()
	assert.True(t, ids["@me/a"] != "" && ids["@me/a"] == ids["@me/b"] && ids["@me/a"] != ids["@you/c"], "the owners' ids:", ids)
	w.ok("init", "d", "--id", "@me/d") // may be registered later
	w.ok("registry", "add", "d")
}

// The same for an owner whom the configuration knows, by id or by manifest.
func TestInitReusesTheOwnersIDOfTheConfiguration(t *testing.T) {
	w := newWorld(t)
	w.ok("init", "a", "--id", "@me/a", "--owner-id", "MINE")
	w.mkdir("plain")
	w.config("workspaces:\n  \"@me/a\": { path: " + w.path("a/WORKSPACE.md") + " }\n  \"@you/p\": { path: " + w.path("plain") + ", owner_id: YOURS }\n")
	w.ok("init", "b", "--id", "@me/b", "--register")
	w.ok("init", "c", "--id", "@you/c", "--register")
	ids := w.ownerIDs()
	assert.True(t, ids["@me/b"] == "MINE" && ids["@you/c"] == "YOURS", "the owners' ids", ids)
}

// What could not be registered is taken away, so that the next try is not
// refused for it; what was there before stays.
func TestInitThatIsRefusedLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.ok("init", "a", "--id", "@me/a", "--register")
	w.write("kept/file", "x")
	for _, dir := range []string{"deep/down/b", "kept"} {
		for range 2 {
			w.refused(exit.Denied, "two owners", "init", dir, "--id", "@me/b", "--owner-id", "ANOTHER", "--register")
		}
	}
	assert.Is(t, assert.ErrOf(os.Lstat(w.path("deep"))), fs.ErrNotExist, "the directories that it made")
	assert.Equal(t, w.files("kept"), "file: x", "left in a directory that was there")
	w.ok("init", "kept", "--id", "@me/b", "--register")
	w.refused(exit.Failed, "exists already", "init", "kept", "--id", "@me/b", "--register")
}

// Why a workspace is not found is said wherever somebody asks: what was skipped
// by the mount, each step by resolve, both by doctor.
func TestWhatWasSkippedIsSaid(t *testing.T) {
	w := newWorld(t)
	w.ok("init", "sp/a", "--id", "@me/a")
	w.mkdir("at")
	w.config("search_path: [ " + w.path("sp") + " ]\n")
	assert.OK(t, os.Chmod(w.path("sp/a/WORKSPACE.md"), 0o666))
	said := func(text, want string) {
		t.Helper()
		assert.Contains(t, tight(text), tight(want), want, "is missing in", text)
	}
	skipped := "skipped " + w.path("sp/a/WORKSPACE.md") + ": can be written by others"
	for _, args := range [][]string{{"mount", "@me/a", "at"}, {"resolve", "@me/a"}} {
		o := w.run(args...)
		said(o.errOut, skipped)
		assert.True(t, o.code == exit.Unresolvable && strings.Count(o.errOut, "\n") == 3, args, "exit", o.code, o.errOut)
	}
	explained := w.run("resolve", "@me/a", "--explain").out
	said(explained, "registry.json: no @me/a")
	said(explained, "WORKSPACE.md: skipped: can be written by others")
	said(w.run("doctor", "@me/a").out, "note workspace "+skipped)
}

// tight is a text without its spaces, and without where its lines are broken.
func tight(text string) string { return strings.Join(strings.Fields(text), "") }

// A workspace that locks out another one is registered, with a word about it.
func TestRegisteringSaysWhatItOverlaps(t *testing.T) {
	w := newWorld(t)
	w.ok("init", "notes", "--id", "@me/notes", "--register")
	for _, args := range [][]string{{"init", "notes/sub", "--id", "@me/sub", "--register"}, {"registry", "add", "notes/sub"}} {
		o := w.run(args...)
		if o.code != exit.Done || !strings.HasPrefix(o.errOut, "note: ") || !strings.Contains(o.errOut, "of @me/notes") || strings.Count(o.errOut, "\n") != 1 {
			t.Errorf("%s: exit %d, said %q", args, o.code, o.errOut)
		}
	}
	assert.Contains(t, w.run("registry", "add", "notes/sub", "--json").out, `"notes": [`, "as JSON")
}

// A row of the configuration becomes the manifest that it stands for, and is in step with it.
func TestInitFromRow(t *testing.T) {
	w := newWorld(t)
	w.config("workspaces: { \"@acme/row\": { path: " + w.path("files") + ", name: A row, tags: [ x ], read_only: true }, \"@acme/plain\": " + w.path("plain") + " }\n")
	w.mkdir("files")
	before := w.ok("resolve", "@acme/row")
	w.ok("init", "--from-row", "@acme/row")
	w.ok("validate", "--strict", w.path("files/WORKSPACE.md"))
	assert.Contains(t, before, "read-only")
	assert.Contains(t, w.ok("resolve", "@acme/row"), "read-only")
	w.refused(exit.Failed, "exists already", "init", "--from-row", "@acme/row")
	w.refused(exit.Unresolvable, "@acme/plain", "init", "--from-row", "@acme/plain")
	w.refused(exit.Usage, "--from-row", "init", "--from-row", "row")
	w.refused(exit.Usage, "argument", "init", w.path("other"), "--from-row", "@acme/row")
	w.refused(exit.Usage, "argument", "init")
}
