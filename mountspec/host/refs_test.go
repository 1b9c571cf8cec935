package host

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

const (
	storageMD = "---\nschema: storage/v1\nprovider: local-fs\nconfig: { mount_path: /DIR/ws/data }\n---\n"
	secretsMD = "---\nsecrets: [ { slug: SLUG, name: A, description: A } ]\n---\n"
)

func (w *world) storage(rel string) string {
	return w.write(rel, strings.ReplaceAll(storageMD, "/DIR", w.dir))
}

func TestStorageRefs(t *testing.T) {
	const slug = `{ ref: "@acme/s3" }`
	lib := func(slug, more string) string {
		return "storages: { \"" + slug + "\": DIR/lib/s3.STORAGE.md }\n" + more
	}
	link := func(target, rel string) func(*world) { return func(w *world) { w.symlink(target, rel) } }
	for _, c := range []struct {
		name    string
		ref     string // storage block
		file    string // a manifest of a storage that is there
		sibling string // a registered workspace beside it, with x.STORAGE.md
		config  string // DIR is the world's
		prepare func(w *world)
		trust   bool
		class   Class
		words   string // empty: resolved
	}{
		{name: "path", ref: `{ ref: ./storage/main.STORAGE.md }`, file: "ws/storage/main.STORAGE.md"},
		{name: "file", ref: `{ file: storage/main.STORAGE.md }`, file: "ws/storage/main.STORAGE.md"},
		{name: "link inside the workspace", ref: `{ ref: ./l.STORAGE.md }`, file: "ws/storage/main.STORAGE.md", prepare: link("storage/main.STORAGE.md", "ws/l.STORAGE.md")},
		{name: "absent", ref: `{ ref: ./none.STORAGE.md }`, class: Unresolvable, words: "storage_ref_unresolvable"},
		{name: "link out of the workspace", ref: `{ ref: ./l.STORAGE.md }`, file: "other/x.STORAGE.md", prepare: link("../other/x.STORAGE.md", "ws/l.STORAGE.md"), class: Denied, words: "leads out"},
		{name: "directory link out of the workspace", ref: `{ ref: ./l/x.STORAGE.md }`, file: "other/x.STORAGE.md", prepare: link("../other", "ws/l"), class: Denied, words: "leads out"},
		{name: "dots out of the workspace", ref: `{ ref: ./a/../../other/x.STORAGE.md }`, file: "other/x.STORAGE.md", class: Denied, words: "no registered workspace"},
		{name: "file with dots", ref: `{ file: ../other/x.STORAGE.md }`, class: Invalid, words: "inside the workspace"},
		{name: "dots that stay", ref: `{ ref: ./a/../storage/main.STORAGE.md }`, file: "ws/storage/main.STORAGE.md"},
		{name: "sibling of nobody", ref: `{ ref: ../other/x.STORAGE.md }`, file: "other/x.STORAGE.md", trust: true, class: Denied, words: "no registered workspace"},
		{name: "sibling of the same owner", ref: `{ ref: ../other/x.STORAGE.md }`, sibling: "@acme/other", trust: true},
		{name: "sibling of another owner", ref: `{ ref: ../other/x.STORAGE.md }`, sibling: "@shared/other", trust: true, class: Denied, words: "another owner"},
		{name: "sibling of another owner, allowed", ref: `{ ref: ../other/x.STORAGE.md }`, sibling: "@shared/other", config: "allow_refs: [ { from: \"@acme/*\", to: \"@shared/*\" } ]\n", trust: true},
		{name: "sibling, of a manifest that is not registered", ref: `{ ref: ../other/x.STORAGE.md }`, sibling: "@acme/other", class: Denied, words: "not registered"},
		{name: "link of the sibling that leads out", ref: `{ ref: ../other/l.STORAGE.md }`, file: "third/x.STORAGE.md", sibling: "@acme/other", prepare: link("../third/x.STORAGE.md", "other/l.STORAGE.md"), trust: true, class: Denied, words: "no registered workspace"},
		{name: "slug", ref: slug, file: "lib/s3.STORAGE.md", config: lib("@acme/s3", ""), trust: true},
		{name: "slug of nobody", ref: `{ ref: "@acme/s4" }`, file: "lib/s3.STORAGE.md", config: lib("@acme/s3", ""), trust: true, class: Unresolvable, words: "storage_ref_unresolvable"},
		{name: "slug of another owner", ref: `{ ref: "@shared/s3" }`, file: "lib/s3.STORAGE.md", config: lib("@shared/s3", ""), trust: true, class: Denied, words: "another owner"},
		{name: "slug of another owner, allowed", ref: `{ ref: "@shared/s3" }`, file: "lib/s3.STORAGE.md", config: lib("@shared/s3", "allow_refs: [ { from: \"@acme/ops\", to: \"@shared/s3\" } ]\n"), trust: true},
		{name: "slug, of a manifest that is not registered", ref: slug, file: "lib/s3.STORAGE.md", config: lib("@acme/s3", ""), class: Denied, words: "not registered"},
		{name: "slug whose file says another id", ref: slug, file: "lib/s3.STORAGE.md", config: lib("@acme/s3", ""), prepare: func(w *world) {
			w.edit("lib/s3.STORAGE.md", "storage/v1\n", "storage/v1\nid: \"@acme/other\"\nversion: 1.0.0\n")
		}, trust: true, class: Denied, words: "says that it is"},
		{name: "slug whose file others can write", ref: slug, file: "lib/s3.STORAGE.md", config: lib("@acme/s3", ""), prepare: func(w *world) {
			assert.OK(w.t, os.Chmod(w.path("lib/s3.STORAGE.md"), 0o666))
		}, trust: true, class: Denied, words: "not trusted"},
		{name: "not valid", ref: `{ ref: ./x.STORAGE.md }`, file: "ws/x.STORAGE.md", prepare: func(w *world) { w.edit("ws/x.STORAGE.md", "provider", "provder") }, class: Invalid, words: "provder"},
		{name: "device", ref: `{ ref: ./x.STORAGE.md }`, prepare: func(w *world) { w.mkdir("ws/x.STORAGE.md") }, class: Unresolvable, words: "regular file"},
		{name: "unknown provider", ref: `{ inline: { provider: floppy, config: {} } }`, class: Unresolvable, words: "storage_provider_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir("ws/data")
			w.mkdir("ws/a")
			w.config = strings.ReplaceAll(c.config, "DIR", w.dir)
			if c.file != "" {
				w.storage(c.file)
			}
			if c.sibling != "" {
				w.workspace("other", c.sibling)
				w.storage("other/x.STORAGE.md")
				w.add("other")
			}
			if c.prepare != nil {
				c.prepare(w)
			}
			p, o := w.manifest("ws", "@acme/ops", c.ref), ResolveOptions{Trust: c.trust}
			if c.words != "" {
				e := w.refused("ws", o, c.class, c.words)
				if e.Class == Denied && strings.Contains(c.name, "of another owner") && !strings.Contains(w.log(), `"allowed":false`) {
					t.Errorf("not in the audit log: %s", w.log())
				}
				return
			}
			got := w.ok("ws", o)
			assert.True(t, got.Local.Path == w.path("ws/data") && len(got.Governing) == 2 && got.Governing[0] == p, "local", got.Local.Path, "governing", got.Governing)
			for _, g := range got.Governing {
				st, err := os.Lstat(g)
				assert.True(t, err == nil && st.Mode().IsRegular(), "governing file", g, "is not the real one", err)
			}
		})
	}
}

func TestOtherManifests(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops", "sandbox: { ref: ./SANDBOX.md }", "code: { file: ./CODE.md }", "identity: [ { file: ./bob.IDENTITY.md }, { ref: \"operator://current\", role: co-author } ]")
	w.config = "identities: { \"operator://current\": { name: Eve, email: eve@acme.test } }\n"
	e := w.refused("ws", ResolveOptions{}, Unresolvable, "sandbox_ref_unresolvable")
	assert.Contains(t, e.Where, "WORKSPACE.md:", "where")
	w.write("ws/SANDBOX.md", "---\nschema: sandbox/v1\nprovider: local\nconfig: {}\n---\n")
	w.write("ws/CODE.md", "---\nkind: code-workspace\nname: x\ndescription: y\ncode: { sources: [ { local: ./src } ] }\n---\n")
	w.write("ws/bob.IDENTITY.md", "---\nname: Bob\nemail: bob@acme.test\n---\n")
	got := w.ok("ws", ResolveOptions{})
	want := []string{w.path("ws/WORKSPACE.md"), w.path("ws/SANDBOX.md"), w.path("ws/CODE.md"), w.path("ws/bob.IDENTITY.md")}
	assert.Slice(t, got.Governing, want, "governing")
	if len(got.Identity) != 2 || got.Identity[0].Email != "bob@acme.test" || got.Identity[1].Email != "eve@acme.test" || got.Identity[1].Role != "co-author" {
		t.Errorf("identity %+v", got.Identity)
	}
}

func TestInventory(t *testing.T) {
	inventory := func(slug string) string { return strings.Replace(secretsMD, "SLUG", slug, 1) }
	const bucket = `{ inline: { provider: self-bucket, config: { kind: s3, region: eu-west-1, bucket: data, prefix: x }, auth: { REF state: { env: [ ACME_KEY ] } } } }`
	for _, c := range []struct {
		name, ref string
		files     map[string]string
		governing int    // how many files, when resolved
		words     string // else
		class     Class
	}{
		{name: "absent, none", ref: "", governing: 1},
		{name: "absent, in .secrets", ref: "", files: map[string]string{".secrets/SECRETS.md": "acme-key"}, governing: 2},
		{name: "absent, plain is not read", ref: "", files: map[string]string{"SECRETS.md": "acme-key"}, governing: 1},
		{name: "absent, both", ref: "", files: map[string]string{"SECRETS.md": "a-key", ".secrets/SECRETS.md": "b-key"}, words: "both exist", class: Unresolvable},
		{name: "plain", ref: "ref: ./SECRETS.md,", files: map[string]string{"SECRETS.md": "acme-key"}, governing: 2},
		{name: "plain means .secrets", ref: "ref: ./SECRETS.md,", files: map[string]string{".secrets/SECRETS.md": "acme-key"}, governing: 2},
		{name: "plain, both", ref: "ref: ./SECRETS.md,", files: map[string]string{"SECRETS.md": "a-key", ".secrets/SECRETS.md": "b-key"}, words: "both exist", class: Unresolvable},
		{name: "plain, none", ref: "ref: ./SECRETS.md,", words: "storage_auth_unresolvable", class: Unresolvable},
		{name: "named", ref: "ref: ./x/S.md,", files: map[string]string{"x/S.md": "acme-key", ".secrets/SECRETS.md": "b-key"}, governing: 2},
		{name: "named, none", ref: "ref: ./x/S.md,", files: map[string]string{".secrets/SECRETS.md": "b-key"}, words: "storage_auth_unresolvable", class: Unresolvable},
		{name: "services are merged", ref: "", files: map[string]string{".secrets/SECRETS.md": "a-key", ".secrets/s3/SECRETS.md": "acme-key"}, governing: 3},
		{name: "services contradict", ref: "", files: map[string]string{".secrets/SECRETS.md": "acme-key", ".secrets/s3/SECRETS.md": "acme-key"}, words: "contradict", class: Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = "secrets: { acme-key: { env: ACME_KEY, allow: [ \"@acme/*\" ] } }\n"
			for rel, slug := range c.files {
				w.write("ws/"+rel, inventory(slug))
			}
			w.manifest("ws", "@acme/ops", strings.Replace(bucket, "REF", c.ref, 1))
			if c.words != "" {
				w.refused("ws", ResolveOptions{Trust: true}, c.class, c.words)
				return
			}
			got := w.ok("ws", ResolveOptions{Trust: true})
			assert.True(t, len(got.Governing) == c.governing && got.Grants.Secrets != nil, "governing", got.Governing)
			assert.False(t, len(c.files) == 0 && !slices.Equal(got.Reserved, []string{w.path("ws/SECRETS.md"), w.path("ws/.secrets/SECRETS.md")}), "reserved", got.Reserved)
			assert.False(t, len(c.files) == 2 && c.ref == "" && !slices.Contains(got.Reserved, w.path("ws/.secrets")), "a further service could be added:", got.Reserved)
		})
	}
}

// Refusals that no other test is about, each by its words.
func TestRefusals(t *testing.T) {
	trusting := ResolveOptions{Trust: true}
	for says, c := range map[string]struct {
		class Class
		of    func(w *world) error
	}{
		`"@acme/policies/x" is not the address of a workspace`: {Unresolvable, func(w *world) error {
			w.workspace("ws", "@acme/ops", mounts(mnt("/m", "@acme/policies/x", "")))
			return assert.ErrOf(w.resolve("ws", trusting))
		}},
		`"@acme/policies/x" is neither a storage that the host lists nor the address of a workspace`: {Unresolvable, func(w *world) error {
			w.workspace("ws", "@acme/ops", `sandbox: { inline: { provider: local, config: {}, mounts: [ { at: /data, source: { ref: "@acme/policies/x" } } ] } }`)
			return assert.ErrOf(w.resolve("ws", ResolveOptions{Trust: true, SandboxMount: "/data"}))
		}},
		"neither an address nor a path": {Unresolvable, func(w *world) error {
			return assert.ErrOf(w.resolver().Resolve(w.t.Context(), "ws", trusting))
		}},
		"not a path": {Unresolvable, func(w *world) error {
			w.workspace("ws", "@acme/ops")
			m := mountspec.Mount{At: "/y", Source: mountspec.Ref{Kind: mountspec.RefPath, Value: "./other"}}
			return assert.ErrOf(w.resolve("ws", ResolveOptions{Trust: true, Mounts: []mountspec.Mount{m}}))
		}},
		"there is no place for the registry file": {Unresolvable, func(w *world) error {
			r := assert.Of(NewResolver(Options{})).OK(w.t)
			w.workspace("ws", "@acme/ops")
			return assert.ErrOf(r.Add(w.t.Context(), w.path("ws"), AddOptions{}))
		}},
		"nothing is fetched by this program": {Unresolvable, func(w *world) error {
			w.config = "allow_endpoints: [ \"https://git.acme.test\" ]\nproviders: { github: { base_url: \"https://git.acme.test\" } }\n"
			r := &remote{world: w}
			return assert.ErrOf(r.resolver().AddFrom(w.t.Context(), r.from("github:acme/site"), AddOptions{}))
		}},
	} {
		t.Run(says, func(t *testing.T) { checkError(t, c.of(newWorld(t)), c.class, says) })
	}
}
