package main

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/host"
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

// A row and its manifest are changed by one call, which shows what it does, and the id
// never (AIP-34, Backward compatibility, and Conformance rules).
func TestAIP34Set(t *testing.T) {
	w := newWorld(t)
	w.mkdir("files")
	w.config("workspaces:\n  # ours\n  \"@acme/row\": { path: " + w.path("files") + ", owner_id: acme-1 }\n")
	set := func(more ...string) []string { return append([]string{"registry", "set", "@acme/row"}, more...) }
	assert.Contains(t, w.ok(set("name=A row", "--show")...), "name: A row")
	w.refused(exit.Unresolvable, "says nothing", "init", "--from-row", "@acme/other")
	assert.Contains(t, w.ok(set("name=A row")...), "name: A row")
	w.ok("registry", "add", "files", "--id", "@acme/row", "--write-manifest")

	shown := w.ok(set("name=Our row", "tags=[ x ]")...)
	for _, line := range []string{"-name: \"A row\"", "+name: \"Our row\"", "+tags: [x]", "owner_id: acme-1, name: Our row, tags: [x]}"} {
		assert.Contains(t, shown, line)
	}
	assert.Contains(t, w.ok(set("name=Our row")...), "nothing has changed")
	nothing := w.ok(set("name=Our row", "--json")...)
	assert.Contains(t, nothing, `"facts": []`)
	assert.Contains(t, nothing, `"files": []`)
	assert.Contains(t, w.ok("resolve", "@acme/row", "--explain"), "WORKSPACE.md")
	assert.Equal(t, w.ok("list", "-q", "--tag", "x"), "@acme/row\n")
	assert.Contains(t, w.ok("registry", "accept", "@acme/row"), "nothing has changed")

	w.refused(exit.Denied, "the owner changed, and the version is still 0.1.0", set("owner_id=acme-2", "--strict")...)
	assert.Equal(t, w.run(set("owner_id=acme-2", "--strict")...).out, "", "a change that is refused is shown as if it was made")
	assert.Contains(t, w.ok(set("owner_id=acme-2", "version=0.2.0", "--strict", "--json")...), `"accepted": true`)
	assert.Equal(t, w.ownerIDs()["@acme/row"], "acme-2")
	w.refused(exit.Usage, "an id does not change", set("id=@acme/other")...)
	w.refused(exit.Usage, "unknown key", set("nam=x")...)
	for _, says := range []string{"no entry of @acme/none", "write one below workspaces there"} {
		w.refused(exit.Unresolvable, says, "registry", "set", "@acme/none", "name=x")
	}
}

// What refused a change is asked once, and told: by the time that the change is shown the
// reason may be gone, and yet nothing was recorded. Here the version is a new one then.
func TestWhatRefusedAChangeIsTold(t *testing.T) {
	w := newWorld(t)
	w.config("")
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.Bool("strict", true, "")
	flags.Bool("json", true, "")
	flags.String("config", w.path("home/.config/wsmount/config.yaml"), "")
	flags.String("state-dir", w.path("state"), "")
	var shown bytes.Buffer
	app := cli.NewApp()
	app.Writer = &shown
	change := host.Change{Unversioned: "the owner changed"}
	err := record(cli.NewContext(app, flags, nil), nil, func(_ *host.Resolver, confirm func(host.Change) bool) (host.Change, error) {
		assert.False(t, confirm(change), "it is recorded")
		change.Unversioned = ""
		return change, nil
	})
	assert.Equal(t, exit.From(err).Code, exit.Denied)
	assert.Contains(t, err.Error(), "the owner changed")
	assert.Contains(t, shown.String(), `"accepted": false`)
}
