package host

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

// What the configuration says of a workspace without a WORKSPACE.md is its manifest
// (AIP-34, Optional for backward compatibility).
func TestRow(t *testing.T) {
	for _, tt := range []struct {
		name, row string
		check     func(t *testing.T, w *world, r *Resolved)
	}{
		{"a directory", "path: DIR/files, name: Notes, version: 1.2.3, tags: [ x ]", func(t *testing.T, w *world, r *Resolved) {
			assert.Equal(t, r.Workspace.Name+" "+r.Workspace.Version+" "+r.Workspace.Tags[0], "Notes 1.2.3 x")
			assert.Equal(t, r.Local.Path, w.path("files"))
			assert.False(t, r.ReadOnly.On(), "it is read-only")
		}},
		{"read-only", "path: DIR/files, read_only: true", func(t *testing.T, w *world, r *Resolved) {
			assert.True(t, r.ReadOnly.On(), "it is not read-only")
		}},
		{"a storage, and no directory", "storage: { provider: dev-local, config: {} }, owner_id: \"7\", owner_type: org", func(t *testing.T, w *world, r *Resolved) {
			assert.Equal(t, r.Storage.Provider+" "+r.Workspace.Owner.Type+" "+r.Workspace.Owner.ID, "dev-local org 7")
		}},
		{"authors", "path: DIR/files, identity: { name: Ann, email: ann@acme.test }", func(t *testing.T, w *world, r *Resolved) {
			assert.Equal(t, r.Identity[0].Name, "Ann")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir("files")
			w.row(tt.row)
			got := w.ok("@acme/row", ResolveOptions{})
			assert.Equal(t, got.Address.String()+" "+got.Trust.String(), "@acme/row registered")
			tt.check(t, w, got)
		})
	}
}

// A mount of what the configuration alone knows does not follow that, which is told.
func TestOutdatedRow(t *testing.T) {
	w := newWorld(t)
	w.mkdir("files")
	w.row("path: DIR/files, name: Notes")
	r, mounted, file := w.resolver(), w.ok("@acme/row", ResolveOptions{}), w.home+"/.config/wsmount/config.yaml"
	assert.OK(t, os.MkdirAll(w.home+"/.config/wsmount", 0o700))
	for _, c := range []struct{ config, says string }{
		{w.config, ""},
		{"# another line\n" + w.config, ""},
		{strings.Replace(w.config, "Notes", "Others", 1), "the host configuration has another entry of it"},
		{strings.Replace(w.config, "name: Notes", "read_only: true", 1), "the host configuration has another entry of it"},
		{"workspaces: {}\n", "the host configuration has no such workspace"},
		{"workspaces: [\n", "the host configuration is not valid any more"},
	} {
		assert.OK(t, os.WriteFile(file, []byte(c.config), 0o600))
		got := r.Outdated(mounted)
		assert.True(t, c.says == "" && got == "" || c.says != "" && strings.Contains(got, c.says), c.config, got)
	}
}

// A row that no manifest could be is refused where it stands, in the words of a manifest.
func TestBadRow(t *testing.T) {
	for _, tt := range []struct{ name, row, says string }{
		{"version", "path: DIR/files, version: new", "version"},
		{"storage", "storage: { provider: self-bucket }", "config"},
		{"key", "path: DIR/files, nam: x", "unknown key"},
		{"owner type", "path: DIR/files, owner_type: team", "team"},
		{"no place", "name: x", "path is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.row(tt.row)
			_, found := ParseConfig([]byte(w.config), ParseOptions{Name: w.path("config.yaml"), Home: w.home})
			err := found.Err()
			assert.Must(t, err != nil, "it is taken")
			assert.Contains(t, err.Error(), tt.says)
		})
	}
}

// Of a row and a manifest the manifest is right (AIP-34, Manifest wins on conflict), but for
// what the host grants: that is refused, and read_only of either counts.
func TestRowAndManifest(t *testing.T) {
	w := newWorld(t)
	w.workspace("files", "@acme/row", "tags: [ x ]")
	for _, tt := range []struct{ row, differs string }{
		{"path: DIR/files", ""},
		{"path: DIR/files, name: A test, version: 1.0.0, tags: [ x ], owner_type: org", ""},
		{"path: DIR/files, name: Other, version: 2.0.0, tags: [ y ], owner_type: user, description: x", ""},
		{"path: DIR/files, read_only: true", ""},
		{"path: DIR/files, storage: { provider: dev-local, config: {} }", "its storage"},
		{"path: DIR/files, identity: { name: Ann, email: ann@acme.test }", "its identity"},
	} {
		w.row(tt.row)
		if tt.differs != "" {
			w.refused("@acme/row", ResolveOptions{}, Denied, tt.differs)
			continue
		}
		got := w.ok("@acme/row", ResolveOptions{})
		assert.Equal(t, got.Workspace.Name+" "+strings.Join(got.Workspace.Tags, " "), "A test x", tt.row)
		assert.Equal(t, got.ReadOnly.On(), strings.Contains(tt.row, "read_only"), tt.row, "is read-only")
	}
	// The same storage, written in the row.
	w.mkdir("more/data")
	w.manifest("more", "@acme/row", "{ inline: { provider: local-fs, config: { mount_path: ./data } } }")
	w.row("path: DIR/more, storage: { provider: local-fs, config: { mount_path: ./data } }")
	w.ok("@acme/row", ResolveOptions{})
	assert.OK(t, os.Remove(w.path("more/WORKSPACE.md")))
	w.ok("@acme/row", ResolveOptions{})
}

var acmeRow = mountspec.Address{Owner: "acme", Slug: "row"}

// A WORKSPACE.md that is added is accepted if it says what the row does, and no more
// (AIP-34, Backward compatibility: adding one is additive).
func TestAIP34AddedManifestThatEqualsItsRow(t *testing.T) {
	w := newWorld(t)
	w.mkdir("files")
	w.write("files/x.POLICY.md", "---\nschema: policy/v1\ndefault: allow\n---\n")
	w.row("path: DIR/files, name: A row, version: 1.2.0, owner_id: \"7\", policy: { file: ./x.POLICY.md }")
	e, err := w.resolver().Add(t.Context(), w.path("files"), AddOptions{Address: acmeRow})
	assert.OK(t, err)
	assert.Equal(t, len(e.Files), 1, "files that the row names")
	w.ok("@acme/row", ResolveOptions{})
	w.ok("files", ResolveOptions{})

	row, manifest := w.resolver().Row(acmeRow)
	text := assert.Of(row.Marshal()).OK(t)
	w.write("files/WORKSPACE.md", string(text)+"Some words.\n")
	assert.Equal(t, w.ok("@acme/row", ResolveOptions{}).Manifest, manifest)
	c := assert.Of(w.resolver().Accept(t.Context(), acmeRow, func(c Change) bool { return c.AddsRow })).OK(t)
	assert.Equal(t, c.Unversioned, "")
	w.ok("@acme/row", ResolveOptions{})
	c, err = w.resolver().Accept(t.Context(), acmeRow, nil)
	assert.True(t, err == nil && c.Empty(), "after it", c, err)

	// It is pinned from then on, and one that says more is a question.
	w.write("files/WORKSPACE.md", strings.Replace(string(text), "name:", "tags: [ x ]\nname:", 1))
	w.refused("@acme/row", ResolveOptions{}, Denied, "not what was accepted")
	assert.OK(t, w.resolver().Remove(t.Context(), "@acme/row"))
	assert.OK(t, os.Remove(w.path("files/WORKSPACE.md")))
	assert.OK(t, assert.ErrOf(w.resolver().Add(t.Context(), w.path("files"), AddOptions{Address: acmeRow})))
	w.write("files/WORKSPACE.md", strings.Replace(string(text), "name:", "tags: [ x ]\nname:", 1))
	w.refused("@acme/row", ResolveOptions{}, Denied, "not what was accepted")
	c = assert.Of(w.resolver().Accept(t.Context(), acmeRow, nil)).OK(t)
	assert.False(t, c.AddsRow, "nobody is asked")
	w.write("files/WORKSPACE.md", string(text))
	w.write("files/x.POLICY.md", "---\nschema: policy/v1\ndefault: deny\n---\n")
	w.refused("@acme/row", ResolveOptions{}, Denied, "not what was accepted")
}

// Another owner, and another provider, without a new version is said (AIP-34, Stable
// identity: a breaking change bumps the version).
func TestAIP34ChangeWithoutNewVersion(t *testing.T) {
	for _, tt := range []struct{ name, from, to, says string }{
		{"owner", "ID-acme", "ID-new", "the owner changed, and the version is still 1.0.0"},
		{"provider", here, scratch, "the provider of the storage changed, and the version is still 1.0.0"},
		{"place", "./data", "./more", ""},
		{"name", "A test", "Another", ""},
	} {
		for _, versioned := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				w := newWorld(t)
				w.mkdir("ws/more")
				w.workspace("ws", "@acme/ops")
				w.add("ws")
				w.edit("ws/WORKSPACE.md", tt.from, tt.to)
				says := tt.says
				if versioned {
					w.edit("ws/WORKSPACE.md", "version: 1.0.0", "version: 2.0.0")
					says = ""
				}
				c := assert.Of(w.resolver().Accept(t.Context(), acmeOps, nil)).OK(t)
				assert.Equal(t, c.Unversioned, says)
				assert.Contains(t, text(c), says)
			})
		}
	}
}
