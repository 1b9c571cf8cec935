package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/template"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// starter makes and registers a workspace, with more in its manifest.
func (w *world) starter(more string) {
	w.t.Helper()
	w.ok("init", "starter", "--id", "@acme/starter", "--owner-id", "acme-1")
	w.edit("starter/WORKSPACE.md", "storage:\n", more+"storage:\n")
	w.edit("starter/WORKSPACE.md", "    provider: local-fs\n", "    provider: local-fs\n    exclude: [ \"drafts/\", \"**/*.log\" ]\n")
	for name, text := range map[string]string{"README": "begin here", "src/run.sh": "#!/bin/sh\n", "drafts/idea": "no", "src/a.log": "no", ".git/config": "no", ".secrets/x": "no", ".env": "no"} {
		w.write("starter/"+name, text)
	}
	assert.OK(w.t, os.Chmod(w.path("starter/src/run.sh"), 0o755))
	w.ok("registry", "add", "starter")
}

const public = "publish: { template: true, visibility: public }\n"

// A new workspace has the files of its template, and is its owner's own.
func TestInitFromTemplate(t *testing.T) {
	w := newWorld(t)
	w.starter(public + "tags: [ x ]\ndescription: About it\nidentity: [ { name: Ann, email: ann@acme.test }, { ref: \"operator://current\" } ]\n")
	o := w.run("init", "mine", "--from", "@acme/starter", "--id", "@me/mine", "--register")
	assert.Equal(t, o.code, exit.Done, o.errOut)
	for _, want := range []string{"identities", "left out: drafts: excluded", "left out: .git: ", "left out: .secrets: ", "left out: .env: ", "left out: src/a.log: "} {
		assert.Contains(t, o.errOut, want)
	}
	assert.Equal(t, w.read("mine/README"), "begin here")
	st := assert.Of(os.Stat(w.path("mine/src/run.sh"))).OK(t)
	assert.True(t, st.Mode()&0o100 != 0, "run.sh can be run")
	for _, gone := range []string{"drafts", "src/a.log", ".git", ".secrets", ".env"} {
		assert.Is(t, assert.ErrOf(os.Lstat(w.path("mine/"+gone))), fs.ErrNotExist, gone)
	}
	manifest := w.read("mine/WORKSPACE.md")
	for _, want := range []string{"\"@me/mine\"", "version: \"0.1.0\"", "About it", "created_at:", "template:", "\"@acme/starter\"", "sha256:", "operator://current", w.path("mine"), "Mount it with", "drafts/", "**/*.log"} {
		assert.Contains(t, manifest, want)
	}
	for _, not := range []string{"ann@acme.test", "acme-1", "visibility"} {
		assert.False(t, strings.Contains(manifest, not), not, "in", manifest)
	}
	w.ok("validate", w.path("mine/WORKSPACE.md"))
	w.ok("resolve", "@me/mine")
	w.noRemains("mine")
}

// noRemains fails where a directory that was filled under another name is left.
func (w *world) noRemains(dir string) {
	w.t.Helper()
	left := assert.Of(filepath.Glob(w.path(filepath.Join(filepath.Dir(dir), ".*wsmount-init")))).OK(w.t)
	assert.Equal(w.t, len(left), 0, left)
}

// Who may begin from what, and what a refusal leaves.
func TestInitFromIsRefused(t *testing.T) {
	w := newWorld(t)
	w.starter("publish: { template: true }\n")
	from := func(code exit.Code, says string, args ...string) {
		t.Helper()
		w.refused(code, says, append([]string{"init", "deep/mine", "--from", "@acme/starter"}, args...)...)
		assert.Is(t, assert.ErrOf(os.Lstat(w.path("deep"))), fs.ErrNotExist, "what was made")
	}
	from(exit.Denied, "another owner", "--id", "@me/mine")
	from(exit.Usage, "--from", "--id", "@me/mine", "--from-row", "@a/b")
	w.mkdir("empty")
	w.ok("init", "empty", "--from", "@acme/starter", "--id", "@acme/empty")
	w.refused(exit.Failed, "not an empty directory", "init", "empty", "--from", "@acme/starter", "--id", "@acme/other")
	w.refused(exit.Unresolvable, "@acme/none", "init", "new", "--from", "@acme/none", "--id", "@me/new")
	w.refused(exit.Unresolvable, "no such file", "init", "new", "--from", "none.tar", "--id", "@me/new")
	w.write("text", "no bundle")
	w.refused(exit.Manifest, "not a bundle", "init", "new", "--from", "text", "--id", "@me/new")
	w.write("starter/token", "ghp_"+strings.Repeat("a1", 18))
	from(exit.Denied, "token", "--id", "@acme/mine")
	w.noRemains("new")
}

// Where it cannot be registered, the files are taken away again.
func TestInitFromThatIsNotRegistered(t *testing.T) {
	w := newWorld(t)
	w.starter(public)
	w.mkdir("kept")
	for _, dir := range []string{"deep/new", "kept"} {
		w.refused(exit.Denied, "two owners", "init", dir, "--from", "@acme/starter", "--id", "@acme/mine", "--owner-id", "ANOTHER", "--register")
	}
	assert.Is(t, assert.ErrOf(os.Lstat(w.path("deep"))), fs.ErrNotExist)
	assert.Equal(t, w.files("kept"), "")
}

// A workspace that begins from a template, or from nothing, may keep its files elsewhere.
func TestInitWithStorageElsewhere(t *testing.T) {
	w := newWorld(t)
	w.starter(public)
	for _, tt := range []struct{ place, has string }{
		{"s3:data/p --region eu-west-1 --auth org/me/s3", "provider: self-bucket|bucket: data|prefix: \"p/\"|credentials_ref: org/me/s3"},
		{"github:me/site#main --auth GITHUB_TOKEN", "provider: github|repo: site|branch: main|operator://current|GITHUB_TOKEN"},
	} {
		dir, _, _ := strings.Cut(tt.place, ":")
		o := w.run(append([]string{"init", dir, "--from", "@acme/starter", "--id", "@acme/" + dir, "--storage"}, strings.Fields(tt.place)...)...)
		assert.Equal(t, o.code, exit.Done, o.errOut)
		assert.Contains(t, tight(o.errOut), tight("the files are in "+w.path(dir)+" only"))
		w.ok(append([]string{"init", dir + "2", "--id", "@acme/" + dir + "2", "--storage"}, strings.Fields(tt.place)...)...)
		for _, word := range strings.Split(tt.has, "|") {
			assert.Contains(t, w.read(dir+"/WORKSPACE.md"), word)
			assert.Contains(t, w.read(dir+"2/WORKSPACE.md"), word)
		}
		w.ok("validate", dir, dir+"2")
	}
	w.refused(exit.Usage, "is of --storage", "init", "new", "--region", "eu-west-1")
	w.refused(exit.Usage, "not for --storage", "init", "new", "--storage", "s3:data", "--provider", "dev-local")
	w.refused(exit.Usage, "not a place", "init", "new", "--storage", "ftp:b")
	w.refused(exit.Usage, "--storage is not for --from-row", "init", "--from-row", "@acme/row", "--storage", "s3:data")
}

// A bundle is written once, by a person's word, and another host begins from it.
func TestPublish(t *testing.T) {
	w := newWorld(t)
	w.starter("publish: { template: true, visibility: unlisted, registry: \"registry.acme.test\" }\n")
	w.refused(exit.Usage, "argument", "publish")
	w.workspace("private")
	w.refused(exit.Denied, "@acme/private is private", "publish", "@acme/private", "--yes")
	var shown template.Shown
	w.asJSON(&shown, "publish", "@acme/starter", "--show")
	assert.Equal(t, shown.Bundle, "", "the bundle of a look")
	assert.Equal(t, len(shown.LeftOut), 5)
	w.refused(exit.Denied, "not published", "publish", "@acme/starter", "--json")
	o := w.run("publish", "@acme/starter")
	assert.Equal(t, o.code, exit.Denied, "no terminal is no yes")
	assert.Contains(t, o.out, "src/run.sh\n")
	assert.Contains(t, o.out, "stays: drafts: excluded")
	assert.Contains(t, o.errOut, "registry.acme.test")

	w.asJSON(&shown, "publish", "@acme/starter", "--yes")
	assert.Equal(t, shown.Bundle, w.path("home/.config/wsmount/published/acme/starter/0.1.0.tar"))
	first := shown.SHA256
	w.asJSON(&shown, "publish", "@acme/starter", "--yes")
	assert.Equal(t, shown.SHA256, first, "published again")
	w.write("starter/README", "other")
	w.refused(exit.Conflict, "published already", "publish", "@acme/starter", "--yes", "--json")
	assert.Equal(t, len(assert.Of(os.ReadDir(filepath.Dir(shown.Bundle))).OK(t)), 1, "what is in the directory")
	assert.Contains(t, w.read("state/audit.log"), "workspace.published")

	other := newWorld(t)
	text := assert.Of(os.ReadFile(shown.Bundle)).OK(t)
	other.write("got.tar", string(text))
	other.ok("init", "mine", "--from", "got.tar", "--id", "@me/mine", "--register")
	assert.Equal(t, other.read("mine/README"), "begin here")
	assert.Contains(t, other.read("mine/WORKSPACE.md"), first)
	other.write("got.tar", strings.Replace(string(text), "begin here", "begin hers", 1))
	other.refused(exit.Manifest, "not a bundle", "init", "new", "--from", "got.tar", "--id", "@me/new")
	other.noRemains("new")
}

// What lies in a store that only a mount can read is published by way of the mount, with the
// manifest that lies beside; what is mounted below is another workspace.
func TestPublishOfAStore(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	addr := w.remoteWorkspace("ops", r, "mode: canonical", public)
	w.workspace("lib")
	w.write("lib/theirs", "x")
	w.refused(exit.Unresolvable, "not mounted", "publish", addr, "--show")
	w.mount(addr, "mnt", "--mount", "at=/lib,source="+w.path("lib"))
	w.write("mnt/plan", "the plan")
	w.write("mnt/a.local", "stays")
	var shown template.Shown
	w.asJSON(&shown, "publish", addr, "--yes")
	assert.Equal(t, len(shown.Entries), 2, shown.Entries)
	assert.Equal(t, len(shown.LeftOut), 2, shown.LeftOut)
	w.ok("init", "mine", "--from", shown.Bundle, "--id", "@me/mine", "--register")
	assert.Equal(t, w.read("mine/plan"), "the plan")
}

// Where a mount is out of sight, and lives on for who has something of it open, what stands in
// its place is not the workspace.
func TestPublishOfAMountOutOfSight(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	addr := w.remoteWorkspace("ops", r, "mode: canonical", public)
	w.mount(addr, "mnt")
	f := assert.Of(os.Open(w.path("mnt"))).OK(t)
	defer f.Close()
	w.ok("umount", "mnt", "--lazy")
	assert.Equal(t, w.status().State, control.Draining, "state of the mount")
	w.write("mnt/private", "of the host")
	w.refused(exit.Unresolvable, "not mounted", "publish", addr, "--show")
	w.ok("umount", "mnt", "--force")
}

// A directory that a killed init was filling is cleared away; one that is being filled is not.
func TestInitFromAfterAKill(t *testing.T) {
	w := newWorld(t)
	w.starter(public)
	w.write(".mine.wsmount-init/half", "x")
	dir := assert.Of(os.Open(w.path(".mine.wsmount-init"))).OK(t)
	defer dir.Close()
	assert.OK(t, unix.Flock(int(dir.Fd()), unix.LOCK_EX))
	w.refused(exit.Failed, "another `wsmount init`", "init", "mine", "--from", "@acme/starter", "--id", "@me/mine")
	assert.Equal(t, w.read(".mine.wsmount-init/half"), "x")
	assert.OK(t, unix.Flock(int(dir.Fd()), unix.LOCK_UN))
	w.ok("init", "mine", "--from", "@acme/starter", "--id", "@me/mine")
	assert.Is(t, assert.ErrOf(os.Lstat(w.path("mine/half"))), fs.ErrNotExist)
	w.noRemains("mine")
}
