package host

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/rowedit"
)

const configFile = "home/.config/wsmount/config.yaml"

// configured makes a text the configuration, as a file; DIR is the world's.
func (w *world) configured(text string) {
	w.t.Helper()
	w.config = strings.ReplaceAll(text, "DIR", w.dir)
	w.write(configFile, w.config)
}

// set is Set with a yes; whatever it wrote is the configuration from then on.
func (w *world) set(words ...string) (Change, error) {
	return w.setIf(func(Change) bool { return true }, words...)
}

func (w *world) setIf(confirm func(Change) bool, words ...string) (Change, error) {
	w.t.Helper()
	values := assert.Of(rowedit.Parse(words)).OK(w.t)
	c, err := w.resolver().Set(w.t.Context(), acmeRow, values, confirm)
	w.config = w.text(configFile)
	return c, err
}

func (w *world) text(rel string) string {
	w.t.Helper()
	b := assert.Of(os.ReadFile(w.path(rel))).OK(w.t)
	return string(b)
}

const rowConfig = `# What this host has.
workspaces:
  # our notes
  "@acme/row":
    path: DIR/ws   # on the big disk
    name: A test

  "@acme/other":   DIR/other

principal: operator://bob
`

const rowManifest = `---
# who we are
schema: workspace/v1
id: "@acme/row"
version: 1.0.0   # of this file
name: A test
owner: { type: org, id: ID-acme, slug: acme }
storage:
  inline: { provider: local-fs, config: { mount_path: ./data } }
---

# A body

--- and so on
`

// rowWorld has a workspace with a row and a manifest, which is registered.
func rowWorld(t *testing.T) *world {
	w := newWorld(t)
	w.mkdir("ws/data")
	w.mkdir("other")
	w.write("ws/WORKSPACE.md", rowManifest)
	w.configured(rowConfig)
	w.add("ws")
	return w
}

// A row that is changed has its manifest follow, and what is registered: there is nothing
// to accept. The rest of both texts stays (AIP-34, Backward compatibility: on row mutation,
// re-emit the manifest).
func TestAIP34SetChangesRowAndManifest(t *testing.T) {
	w := rowWorld(t)
	assert.OK(t, os.Chmod(w.path(configFile), 0o644))
	c, err := w.set("name=Our notes", "version=1.1.0", "tags=[ x, y ]", "read_only=true", "storage={ provider: local-fs, config: { mount_path: ./data } }")
	assert.OK(t, err)
	assert.Contains(t, text(c), "+    name: Our notes")
	assert.Contains(t, text(c), "+name: Our notes")
	assert.Equal(t, w.config, strings.ReplaceAll(`# What this host has.
workspaces:
  # our notes
  "@acme/row":
    path: DIR/ws # on the big disk
    name: Our notes
    version: 1.1.0
    tags: [x, y]
    read_only: true
    storage: {provider: local-fs, config: {mount_path: ./data}}

  "@acme/other":   DIR/other

principal: operator://bob
`, "DIR", w.dir))
	assert.Equal(t, w.text("ws/WORKSPACE.md"), `---
# who we are
schema: workspace/v1
id: "@acme/row"
version: 1.1.0 # of this file
name: Our notes
owner: { type: org, id: ID-acme, slug: acme }
storage:
  inline: { provider: local-fs, config: { mount_path: ./data } }
tags: [x, y]
defaults:
  read_only: true
---

# A body

--- and so on
`)
	got := w.ok("@acme/row", ResolveOptions{})
	assert.Equal(t, got.Workspace.Name+" "+got.Workspace.Version+" "+strings.Join(got.Workspace.Tags, " "), "Our notes 1.1.0 x y")
	assert.True(t, got.ReadOnly.On(), "it is not read-only")
	again, err := w.resolver().Accept(t.Context(), acmeRow, nil)
	assert.OK(t, err)
	assert.True(t, again.Empty(), "there is something to accept", again)
	st, err := os.Stat(w.path(configFile))
	assert.OK(t, err)
	assert.Equal(t, st.Mode().Perm(), 0o644)
	assert.Equal(t, strings.Count(w.log(), `"verb":"set"`), 1, "in the audit log")

	c, err = w.set("name=Our notes")
	assert.OK(t, err)
	assert.True(t, c.Empty(), "the same again changes", c)
	_, err = w.set("tags=", "name=") // a manifest has a name
	assert.OK(t, err)
	assert.False(t, strings.Contains(w.config+w.text("ws/WORKSPACE.md"), "tags"), "tags are still there")
	assert.Equal(t, w.ok("@acme/row", ResolveOptions{}).Workspace.Name, "Our notes")
}

// A workspace without a manifest has its row changed, and one that the configuration
// alone knows, with a manifest, both.
func TestAIP34SetWithoutManifestOrRegistry(t *testing.T) {
	w := newWorld(t)
	w.mkdir("ws/data")
	w.configured("workspaces: { \"@acme/row\": DIR/ws }\n")
	assert.OK(t, assert.ErrOf(w.set("name=Notes", "storage={ provider: dev-local, config: {} }")))
	got := w.ok("@acme/row", ResolveOptions{})
	assert.Equal(t, got.Workspace.Name+" "+got.Storage.Provider, "Notes dev-local")
	assert.False(t, exists(w.path("ws/WORKSPACE.md")), "it has a manifest")

	w.configured("workspaces: { \"@acme/row\": DIR/ws }\n")
	body := strings.Repeat("much more\n", 200_000)
	w.write("ws/WORKSPACE.md", rowManifest+body)
	assert.OK(t, assert.ErrOf(w.set("name=Notes")))
	assert.Equal(t, w.ok("@acme/row", ResolveOptions{}).Workspace.Name, "Notes")
	assert.True(t, w.text("ws/WORKSPACE.md") == strings.Replace(rowManifest, "A test", "Notes", 1)+body, "the body is another one")
}

// What is refused leaves everything as it was.
func TestAIP34SetRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(w *world)
		words  []string
		class  Class
		says   string
	}{
		{"a value that is not valid", nil, []string{"version=new"}, Invalid, "version"},
		{"what no manifest may be without", nil, []string{"storage={ provider: self-bucket }"}, Invalid, "config"},
		{"a second owner of the name", func(w *world) {
			w.workspace("more", "@acme/more")
			w.add("more")
		}, []string{"owner_id=ID-new"}, Denied, "owner \"acme\" would have id ID-new, and has ID-acme in @acme/more"},
		{"a manifest that has changed since", func(w *world) { w.edit("ws/WORKSPACE.md", "version: 1.0.0", "version: 3.0.0") }, []string{"name=New"}, Denied, "not what was accepted"},
		{"a manifest that says otherwise", func(w *world) {
			w.configured(strings.Replace(rowConfig, "name:", "identity: { name: Ann, email: ann@acme.test }\n    name:", 1))
		}, []string{"name=New"}, Denied, "its identity"},
		{"no row", func(w *world) { w.configured("workspaces: { \"@acme/other\": DIR/other }\n") }, []string{"name=New"}, Unresolvable, "it has no entry of @acme/row"},
		{"a manifest that others can write", func(w *world) { assert.OK(w.t, os.Chmod(w.path("ws/WORKSPACE.md"), 0o666)) }, []string{"name=New"}, Denied, "not trusted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := rowWorld(t)
			if tt.before != nil {
				tt.before(w)
			}
			config, manifest := w.config, w.text("ws/WORKSPACE.md")
			checkError(t, assert.ErrOf(w.set(tt.words...)), tt.class, tt.says)
			assert.Equal(t, w.config, config)
			assert.Equal(t, w.text("ws/WORKSPACE.md"), manifest)
		})
	}
}

// Who is asked sees the change, and what of it should have had a new version (AIP-34,
// Stable identity); a no leaves everything as it was.
func TestAIP34SetWithoutNewVersion(t *testing.T) {
	w := rowWorld(t)
	words := []string{"owner_id=ID-new", "storage={ provider: dev-local, config: {} }"}
	for _, confirm := range []func(Change) bool{nil, func(c Change) bool { return c.Unversioned == "" }} {
		c := assert.Of(w.setIf(confirm, words...)).OK(t)
		assert.Equal(t, c.Unversioned, "the provider of the storage and the owner changed, and the version is still 1.0.0")
		assert.Equal(t, w.config+w.text("ws/WORKSPACE.md"), strings.ReplaceAll(rowConfig, "DIR", w.dir)+rowManifest)
	}
	assert.Equal(t, assert.Of(w.set(append(words, "version=2.0.0")...)).OK(t).Unversioned, "")
	got := w.ok("@acme/row", ResolveOptions{})
	assert.Equal(t, got.Workspace.Owner.ID+" "+got.Storage.Provider, "ID-new dev-local")
}

// Another provider of the storage needs a grant of the policy as it was (AIP-39,
// storage:swap-provider), in the manifest or in the row, also where the same call takes that
// away. Who only looks sees the answer.
func TestSetSwapsProvider(t *testing.T) {
	const swap, allowed = "storage={ provider: dev-local, config: {} }", "storage:*"
	for _, tt := range []struct{ name, granted string }{{"granted", allowed}, {"not granted", "storage:write"}} {
		for _, in := range []string{"manifest", "row"} {
			t.Run(tt.name+" in the "+in, func(t *testing.T) {
				var w *world
				manifest := "row/plain"
				policy := `policy: { schema: policy/v1, grants: [ { principal: "operator://bob", actions: [ { action: "` + tt.granted + `" } ] } ] }`
				if in == "row" {
					w = newWorld(t)
					w.configured("principal: operator://bob\nworkspaces:\n  \"@acme/row\":\n    path: DIR/row\n    " + policy + "\n")
					w.write("row/plain", "no manifest")
				} else {
					w, manifest = rowWorld(t), "ws/WORKSPACE.md"
					w.edit("ws/WORKSPACE.md", "storage:", policy+"\nstorage:")
					w.configured("principal: operator://bob\n" + strings.Replace(rowConfig, "principal:", "#", 1))
					assert.OK(t, assert.ErrOf(w.resolver().Accept(t.Context(), acmeRow, func(Change) bool { return true })))
				}
				before := w.config + w.text(manifest)
				look := assert.Of(w.setIf(nil, swap)).OK(t)
				assert.Contains(t, strings.Join(look.Facts, "\n"), "policy: storage:swap-provider is ")
				if tt.granted != allowed { // nor the one after the other
					checkError(t, assert.ErrOf(w.set("policy=")), Denied, "nor the policy to one that does")
				}
				_, err := w.set(swap, "policy=")
				assert.Contains(t, w.log(), "storage:swap-provider", "the audit log")
				if tt.granted == allowed {
					assert.OK(t, err)
					return
				}
				checkError(t, err, Denied, "does not let operator://bob change the provider")
				assert.Equal(t, w.config+w.text(manifest), before)
			})
		}
	}
}

// Where the host configuration stands for a manifest, its policy is asked when another
// storage in it is accepted, as are the files of it that were accepted.
func TestAcceptOfARowAsksItsPolicy(t *testing.T) {
	const bob = `{ schema: policy/v1, grants: [ { principal: "operator://bob", actions: [ { action: "storage:`
	for _, granted := range []string{"write", "swap-provider"} {
		for _, row := range []string{bob + granted + `" } ] } ] }`, "{ ref: ./team.POLICY.md }"} {
			t.Run(granted+" "+row, func(t *testing.T) {
				w := newWorld(t)
				text := "---\nschema: policy/v1\ngrants: [ { principal: \"operator://bob\", actions: [ { action: \"storage:" + granted + "\" } ] } ]\n---\n"
				w.write("row/team.POLICY.md", text)
				config := "principal: operator://bob\nworkspaces: { \"@acme/row\": { path: DIR/row, policy: " + row + " } }\n"
				w.configured(config)
				w.config = w.text(configFile)
				assert.OK(t, assert.ErrOf(w.resolver().Add(t.Context(), w.path("row"), AddOptions{Address: acmeRow})))
				w.write("row/team.POLICY.md", strings.Replace(text, granted, "*", 1))
				w.configured(strings.Replace(config, "policy:", "storage: { provider: dev-local, config: {} }, policy:", 1))
				_, err := w.resolver().Accept(t.Context(), acmeRow, func(Change) bool { return true })
				if granted == "write" {
					checkError(t, err, Denied, "does not let operator://bob change the provider")
				} else {
					assert.OK(t, err)
				}
			})
		}
	}
}

// A file that somebody else changes meanwhile is not replaced, and neither is the other.
func TestAIP34SetMeanwhile(t *testing.T) {
	for _, rel := range []string{configFile, "ws/WORKSPACE.md"} {
		t.Run(rel, func(t *testing.T) {
			w := rowWorld(t)
			_, err := w.setIf(func(Change) bool { w.write(rel, w.text(rel)+"\n"); return true }, "name=New")
			assert.Is(t, err, hostfile.ErrChanged)
			assert.False(t, strings.Contains(w.config+w.text("ws/WORKSPACE.md"), "New"), "it has a new name")
		})
	}
}

// After a crash between the files the manifest still counts, and after both it is refused;
// what puts it in step is the same call, or accepting.
func TestAIP34SetAfterACrash(t *testing.T) {
	for _, after := range []string{"configuration", "manifest"} {
		t.Run(after, func(t *testing.T) {
			w := rowWorld(t)
			w.configured(strings.Replace(rowConfig, "A test", "New", 1))
			if after == "manifest" {
				w.edit("ws/WORKSPACE.md", "A test", "New")
			}
			if after == "configuration" {
				assert.Equal(t, w.ok("@acme/row", ResolveOptions{}).Workspace.Name, "A test")
			}
			_, err := w.set("name=New")
			if after == "manifest" {
				w.refused("@acme/row", ResolveOptions{}, Denied)
				assert.Contains(t, checkError(t, err, Denied, "not what was accepted").Hint, "registry accept")
				_, err = w.resolver().Accept(t.Context(), acmeRow, func(Change) bool { return true })
			}
			assert.OK(t, err)
			assert.Equal(t, w.ok("@acme/row", ResolveOptions{}).Workspace.Name, "New")
		})
	}
}
