package host

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

// All that can be asked for by its address is listed, with where the address leads, and
// what is listed and cannot be mounted says why (AIP-34, Motivation).
func TestEnumerate(t *testing.T) {
	w := newWorld(t)
	w.workspace("reg", "@acme/reg", "tags: [ one, two ]")
	w.workspace("cfg", "@acme/cfg")
	w.workspace("changed", "@acme/changed")
	w.mkdir("bare")
	w.workspace("s/one", "@acme/one")
	w.workspace("s/acme/two", "@acme/two")
	w.workspace("s/acme/other", "@acme/not-other")
	w.workspace("s/one/nested", "@acme/nested")
	w.workspace("s/copy", "@acme/twice")
	w.workspace("s/copy2", "@acme/twice")
	w.workspace("s/old-reg", "@acme/reg") // the address means the registered one
	w.workspace("s/open", "@acme/open")
	assert.OK(t, os.Chmod(w.path("s/open"), 0o777))
	w.write("s/broken/WORKSPACE.md", "---\nid: [\n---\n")
	w.workspace("agent", "@acme/agent")
	w.workspace("agent2", "@acme/agent2")
	w.write("home/.agentproto/workspaces.json", `{"version": 1, "workspaces": [{"slug": "@acme/agent", "path": "`+w.path("agent")+
		`"}, {"slug": "agent2", "path": "`+w.path("agent2")+`"}, {"slug": "@acme/gone", "path": "`+w.path("gone")+`"}]}`)
	w.manifest("s/cloud", "@acme/cloud", cloudAt("guilde", "x")) // which is not for what is not registered
	w.config = "allow_paths: [ " + w.mkdir("shared/deep") + "/.. ]\nsearch_path: [ " + w.path("s") + " ]\nworkspaces: { \"@acme/cfg\": { path: " + w.path("cfg") + " } }\n"
	w.workspace("closed", "@acme/closed", "policy: { schema: policy/v1, default: deny }")
	w.manifest("far", "@acme/far", s3("https://s3.acme.test", "data", "p", ""))
	w.manifest("over", "@acme/over", at(w.path("shared")))
	w.manifest("under", "@acme/under", at(w.path("shared/deep")))
	for _, name := range []string{"reg", "changed", "closed", "far", "over", "under"} {
		w.add(name)
	}
	assert.OK(t, assert.ErrOf(w.resolver().Add(t.Context(), w.path("bare"), AddOptions{Address: mountspec.Address{Owner: "bob", Slug: "bare"}})))
	w.workspace("changed", "@acme/changed", "description: since then")

	list, passed, err := w.resolver().Enumerate(t.Context())
	assert.OK(t, err)
	var got []string
	for _, k := range list {
		line := k.Address.String() + " " + k.Trust.String() + " " + strings.TrimPrefix(k.Path, w.dir+"/")
		if k.Err != nil {
			got = append(got, line+" !")
			if k.Address.Slug == "twice" {
				assert.Contains(t, k.Err.Error(), "another manifest has the id @acme/twice too")
			}
			w.refused(k.Address.String(), ResolveOptions{}, classOf(k.Err))
			continue
		}
		got = append(got, line)
		r := w.ok(k.Address.String(), ResolveOptions{})
		assert.Equal(t, orDefault(r.Manifest, r.Root), k.Path, "where the address leads")
		assert.Slice(t, k.Workspace.Tags, r.Workspace.Tags, "tags")
		assert.Equal(t, k.Provider, r.Storage.Provider, "provider")
	}
	assert.Slice(t, got, []string{
		"@acme/agent unverified agent/WORKSPACE.md",
		"@acme/agent2 unverified agent2/WORKSPACE.md",
		"@acme/cfg registered cfg/WORKSPACE.md",
		"@acme/changed registered changed/WORKSPACE.md !",
		"@acme/closed registered closed/WORKSPACE.md !",
		"@acme/cloud unverified s/cloud/WORKSPACE.md !",
		"@acme/far registered far/WORKSPACE.md !",
		"@acme/gone unverified gone !",
		"@acme/one unverified s/one/WORKSPACE.md",
		"@acme/over registered over/WORKSPACE.md !",
		"@acme/reg registered reg/WORKSPACE.md",
		"@acme/twice unverified s/copy/WORKSPACE.md !",
		"@acme/twice unverified s/copy2/WORKSPACE.md !",
		"@acme/two unverified s/acme/two/WORKSPACE.md",
		"@acme/under registered under/WORKSPACE.md !",
		"@bob/bare registered bare",
	})
	all := strings.Join(passed, "\n")
	assert.Contains(t, all, w.path("s/open"), "skipped")
	assert.Contains(t, all, w.path("s/broken/WORKSPACE.md"), "skipped")

	for _, k := range list {
		assert.True(t, k.Address.Slug != "nested", "what lies in a workspace is its content")
	}
}

// Manifests are those of a directory and of the directories in it, as find -maxdepth 2
// shows them, registered or not.
func TestManifests(t *testing.T) {
	w := newWorld(t)
	w.workspace("d", "@acme/top")
	w.workspace("d/one", "@acme/one")
	w.workspace("d/one/deep", "@acme/deep")
	w.workspace("d/squat", "@acme/reg")
	w.workspace("reg", "@acme/reg")
	w.write("d/broken/WORKSPACE.md", "---\nid: [\n---\n")
	assert.OK(t, os.Symlink(w.path("reg"), w.path("d/linked")))
	w.add("reg")
	list := assert.Of(w.resolver().Manifests(t.Context(), w.path("d"))).OK(t)
	var got []string
	for _, k := range list {
		line := strings.TrimPrefix(k.Path, w.dir+"/")
		if k.Err != nil {
			line += " !"
		}
		got = append(got, line)
	}
	assert.Slice(t, got, []string{"d/broken/WORKSPACE.md !", "d/squat/WORKSPACE.md !", "d/one/WORKSPACE.md", "d/WORKSPACE.md"})
	checkError(t, assert.ErrOf(w.resolver().Manifests(t.Context(), w.path("none"))), Unresolvable)
}

func classOf(err error) Class {
	var e *Error
	errors.As(err, &e)
	return e.Class
}
