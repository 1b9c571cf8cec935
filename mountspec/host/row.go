package host

import (
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/yamledit"
	"github.com/wsmount/wsmount/mountspec/host/yamlread"
)

// rowKeys are the keys that an entry of workspaces has in common with a manifest.
var rowKeys = []string{"name", "description", "version", "storage", "identity", "tags", "code", "policy"}

// rowReader collects a row from the values of an entry.
type rowReader struct {
	doc       yaml.Node
	ownerType string
	readOnly  *yaml.Node
	named     []string // keys that the entry has
}

// fields are the readers of a row's keys.
func (r *rowReader) fields() yamlread.Fields {
	f := yamlread.Fields{
		"owner_type": func(v yamlread.Node) {
			r.ownerType, _ = v.OneOf("user", "org", "guild")
			r.named = append(r.named, "owner_type")
		},
		"read_only": func(v yamlread.Node) {
			r.readOnly = v.YAML
			r.named = append(r.named, "read_only")
		},
	}
	for _, key := range rowKeys {
		f[key] = func(v yamlread.Node) {
			r.named = append(r.named, key)
			val := v.YAML
			if key == "storage" && yamledit.Has(val, "provider") {
				val = yamledit.Mapping("inline", val)
			}
			yamledit.Add(&r.doc, key, val)
		}
	}
	return f
}

// workspace reads the row as the manifest that it stands for; nil: the entry has none, or
// an invalid one, which is reported at v.
func (r *rowReader) workspace(v yamlread.Node, a mountspec.Address, ownerID, path string) *Row {
	if len(r.named) == 0 {
		return nil
	}
	doc := yamledit.Mapping("schema", yamledit.Scalar("workspace/v1"))
	yamledit.Add(doc, "id", yamledit.Scalar(a.String()))
	yamledit.Add(doc, "owner", yamledit.Mapping("type", yamledit.Scalar(orDefault(r.ownerType, "user")), "id", yamledit.Scalar(orDefault(ownerID, a.Owner)), "slug", yamledit.Scalar(a.Owner)))
	doc.Content = append(doc.Content, r.doc.Content...)
	besides := yamledit.Mapping("name", yamledit.Scalar(a.String()), "version", yamledit.Scalar("0.1.0"),
		"storage", yamledit.Mapping("inline", yamledit.Mapping("provider", yamledit.Scalar(mountspec.ProviderLocalFS), "config", yamledit.Mapping("mount_path", yamledit.Scalar("."))))) // see at
	for i := 0; i < len(besides.Content); i += 2 {
		if key := besides.Content[i].Value; !yamledit.Has(doc, key) {
			yamledit.Add(doc, key, besides.Content[i+1])
		}
	}
	if r.readOnly != nil {
		yamledit.Add(doc, "defaults", yamledit.Mapping("read_only", r.readOnly))
	}
	text, err := yaml.Marshal(doc)
	if !v.Check("row", "this is a fault of wsmount", err) {
		return nil
	}
	name := filepath.Join(path, manifestName)
	ws, found := mountspec.ParseWorkspace(mountspec.Source{Name: name, Data: []byte("---\n" + string(text) + "---\n")}, mountspec.Options{})
	for _, f := range found.Filter(mountspec.Error) {
		v.Fail(f.Rule, f.Hint, "%s: %s", f.Path, f.Message)
	}
	if found.Err() != nil {
		return nil
	}
	return &Row{workspace: ws, named: r.named}
}

// A Row is the manifest that an entry of the configuration stands for: name, owner type,
// version, storage and the like, in the form of a WORKSPACE.md, which the workspace then
// does not need (AIP-34: it "is still a workspace - hosts fall back to defaults inferred
// from their database row"). It is not changed.
type Row struct {
	workspace *mountspec.Workspace
	named     []string // keys that the entry has: the others are defaults
}

// at is the manifest of a row with the directory dir, without links: that is the store,
// unless the entry names another.
func (r *Row) at(dir string) *mountspec.Workspace {
	if r.hasStorage() {
		return r.workspace
	}
	ws, st := *r.workspace, *r.workspace.Storage.Inline
	st.Config = mountspec.LocalFSConfig{MountPath: dir}
	ws.Storage.Inline = &st
	return &ws
}

// hasStorage reports whether the entry names a storage: the workspace then needs no directory.
func (r *Row) hasStorage() bool { return r != nil && slices.Contains(r.named, "storage") }

// readOnly reports whether the entry forbids writing, even if a manifest does not.
func (r *Row) readOnly() bool { return r != nil && r.workspace.Defaults.ReadOnly }

// differs returns the keys of the row that a manifest contradicts. In keys that describe the
// workspace, such as its names, the manifest wins (AIP-34, Manifest wins on conflict).
// Storage, identity and policy are grants of the host, which no author of a manifest changes:
// these are refused. read_only of either counts.
func (r *Row) differs(ws *mountspec.Workspace) (refused, wins []string) {
	row := r.workspace
	same := func(with func(to *mountspec.Workspace)) bool {
		other := *row
		with(&other)
		return printsAs(row, &other)
	}
	for _, c := range []struct {
		key  string
		same bool
		to   *[]string
	}{
		{"name", row.Name == ws.Name, &wins},
		{"description", row.Description == ws.Description, &wins},
		{"version", row.Version == ws.Version, &wins},
		{"owner_type", row.Owner.Type == ws.Owner.Type, &wins},
		{"tags", slices.Equal(row.Tags, ws.Tags), &wins},
		{"code", same(func(to *mountspec.Workspace) { to.Code = ws.Code }), &wins},
		{"storage", same(func(to *mountspec.Workspace) { to.Storage = ws.Storage }), &refused},
		{"identity", same(func(to *mountspec.Workspace) { to.Identity = ws.Identity }), &refused},
		{"policy", same(func(to *mountspec.Workspace) { to.Policy = ws.Policy }), &refused},
	} {
		if !c.same && slices.Contains(r.named, c.key) {
			*c.to = append(*c.to, c.key)
		}
	}
	return refused, wins
}

// printsAs compares manifests by their text.
func printsAs(a, b *mountspec.Workspace) bool {
	x, err1 := a.Marshal()
	y, err2 := b.Marshal()
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// addsRow reports whether the only change of a workspace that was registered without a
// manifest is a manifest that says exactly the same as the configuration.
func (l *loaded) addsRow(e *Registration) bool {
	return l.manifest != "" && !e.HasManifest() && l.cand.row != nil && l.loc == e.Location && l.ws.Owner.ID == e.OwnerID &&
		e.Differs(l.governing()[1:]) == "" && printsAs(l.cand.row.at(l.home.root), l.ws)
}

// rowDir is the directory for the relative files of a row without a path, and for its manifest.
func rowDir(config string, a mountspec.Address) string {
	return filepath.Join(filepath.Dir(config), "workspaces", a.Owner, a.Slug)
}
