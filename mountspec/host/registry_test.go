package host

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

func TestRegistryRoundTrip(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops", "sandbox: { ref: ./SANDBOX.md }")
	w.write("ws/SANDBOX.md", "---\nschema: sandbox/v1\nprovider: local\nconfig: {}\n---\n")
	r := w.resolver()
	e := assert.Of(r.Add(t.Context(), w.path("ws"), AddOptions{})).OK(t)
	if e.Address != acmeOps || e.OwnerID != "ID-acme" || e.Path != w.path("ws/WORKSPACE.md") || len(e.Files) != 2 || !e.AddedAt.Equal(w.now) || e.Location.Prefix != w.path("ws/data") {
		t.Errorf("entry %+v", e)
	}
	again, err := r.Add(t.Context(), w.path("ws/WORKSPACE.md"), AddOptions{Address: acmeOps, OwnerID: "ID-acme"})
	assert.True(t, err == nil && again.Path == e.Path, "again", err)
	list, err := w.resolver().List()
	assert.True(t, err == nil && len(list) == 1 && list[0].Fingerprint == e.Fingerprint, "list", list, err)
	st := assert.Of(os.Stat(w.home + "/.config/wsmount/registry.json")).OK(t)
	assert.Equal(t, st.Mode().Perm(), 0o600, "mode", st.Mode())
	assert.OK(t, r.Remove(t.Context(), acmeOps.String()))
	checkError(t, r.Remove(t.Context(), acmeOps.String()), Unresolvable, "not in the registry")
	w.refused("@acme/ops", ResolveOptions{}, Unresolvable)
	for _, want := range []string{`"verb":"add"`, `"verb":"remove"`} {
		assert.Equal(t, strings.Count(w.log(), want), 1, "audit log", w.log())
	}
}

func TestAddRefuses(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops")
	w.add("ws")
	w.workspace("copy", "@acme/ops")
	add := func(rel string, o AddOptions) error {
		return assert.ErrOf(w.resolver().Add(t.Context(), w.path(rel), o))
	}
	checkError(t, add("copy", AddOptions{}), Denied, "two manifests with the id @acme/ops: "+w.path("ws"))
	checkError(t, add("ws", AddOptions{Address: mountspec.Address{Owner: "evil", Slug: "ops"}}), Denied)
	checkError(t, add("ws", AddOptions{OwnerID: "other"}), Denied, "owner.id")
	w.workspace("ws", "@acme/renamed")
	checkError(t, add("ws", AddOptions{}), Denied, "it is registered as @acme/ops")
	checkError(t, add("none", AddOptions{}), Unresolvable)
	w.config = "workspaces: { \"@acme/third\": " + w.mkdir("x") + " }\n"
	w.workspace("third", "@acme/third")
	checkError(t, add("third", AddOptions{}), Denied, "host configuration")
}

// Every governing file is pinned: a change takes effect only through Accept.
func TestChangesWaitForAccept(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		facts  string // of the difference, one of them
		line   string
	}{
		{"policy is loosened", func(w *world) {
			w.write("ws/team.POLICY.md", "---\nschema: policy/v1\ndefault: allow\n---\n")
		}, "", "+default: allow"},
		{"storage moves", func(w *world) {
			w.mkdir("ws/other")
			w.edit("ws/WORKSPACE.md", "./data", "./other")
		}, "storage: local-fs", "+storage: { inline: { provider: local-fs, config: { mount_path: ./other } } }"},
		{"owner changes", func(w *world) { w.edit("ws/WORKSPACE.md", "ID-acme", "ID-evil") }, "owner id: ID-acme -> ID-evil", "+owner: { type: org, id: ID-evil, slug: acme }"},
		{"another policy", func(w *world) {
			w.write("ws/b.POLICY.md", "---\nschema: policy/v1\ndefault: allow\n---\n")
			w.edit("ws/WORKSPACE.md", "./team.POLICY.md", "./b.POLICY.md")
		}, "", "-policy: { ref: ./team.POLICY.md }"},
		{"a line that hides itself", func(w *world) { w.edit("ws/WORKSPACE.md", "A test", "A test # \u202etset") }, "", `+name: A test # \u202etset`},
		{"the directory is exchanged for a link", func(w *world) {
			assert.OK(w.t, os.Remove(w.path("ws/data")))
			w.mkdir("ws/x")
			w.symlink("x", "ws/data")
		}, "fingerprint: ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.write("ws/team.POLICY.md", "---\nschema: policy/v1\ngrants: [ { principal: \"*\", actions: [ { action: \"storage:*\" } ] } ]\n---\n")
			w.workspace("ws", "@acme/ops", "policy: { ref: ./team.POLICY.md }")
			w.add("ws")
			mounted := w.ok("@acme/ops", ResolveOptions{})
			c.change(w)
			assert.Equal(t, w.resolver().Outdated(mounted), "", "before it is accepted")
			w.refused("@acme/ops", ResolveOptions{}, Denied)
			w.refused("ws", ResolveOptions{Trust: true}, Denied)
			checkError(t, assert.ErrOf(w.resolver().Add(t.Context(), w.path("ws"), AddOptions{})), Denied, "has changed")

			var shown Change
			looked, err := w.resolver().Accept(t.Context(), acmeOps, nil)
			assert.Must(t, err == nil && !looked.Empty(), "Accept shows", looked, err)
			assert.OK(t, assert.ErrOf(w.resolver().Accept(t.Context(), acmeOps, func(Change) bool { return false })))
			w.refused("@acme/ops", ResolveOptions{}, Denied)
			assert.OK(t, assert.ErrOf(w.resolver().Accept(t.Context(), acmeOps, func(c Change) bool { shown = c; return true })))
			got := text(shown)
			assert.True(t, strings.Contains(got, c.facts) && strings.Contains(got, c.line), "shown:", got, "want", c.facts, "and", c.line)
			w.ok("@acme/ops", ResolveOptions{})
			assert.Contains(t, w.resolver().Outdated(mounted), "goes on with what was accepted when it was mounted")
			c, err := w.resolver().Accept(t.Context(), acmeOps, nil)
			assert.True(t, err == nil && c.Empty(), "after it", c, err)
		})
	}
}

func text(c Change) string {
	out := c.Facts
	for _, f := range c.Files {
		out = append(append(out, f.Path), f.Lines...)
	}
	return strings.Join(out, "\n")
}

func (w *world) edit(rel, old, new string) {
	w.t.Helper()
	b := assert.Of(os.ReadFile(w.path(rel))).OK(w.t)
	assert.Must(w.t, strings.Contains(string(b), old), rel, "has no", old)
	w.write(rel, strings.Replace(string(b), old, new, 1))
}

// A change of the host's own configuration that moves the bytes is a
// difference as well.
func TestHostMovesTheBucket(t *testing.T) {
	w := newWorld(t)
	w.config = cloudConfig
	w.manifest("ws", "@acme/ops", cloudAt("guilde", "guilds/acme"))
	w.add("ws")
	w.ok("@acme/ops", ResolveOptions{})
	w.config = strings.Replace(cloudConfig, ":9000", ":9001", 1)
	w.refused("@acme/ops", ResolveOptions{}, Denied, "the storage is now")
}

func TestDamagedRegistry(t *testing.T) {
	for name, c := range map[string]struct{ text, words string }{
		"not JSON":      {"{", "it is not JSON"},
		"no schema":     {`{"workspaces":{}}`, "it has no schema"},
		"newer":         {`{"x":1,"schema":"wsmount/registry/v3","workspaces":{}}`, "a newer wsmount wrote it: its form is wsmount/registry/v3, and this one knows them up to wsmount/registry/v2"},
		"unknown field": {`{"schema":"wsmount/registry/v2","workspaces":{},"x":1}`, "it has an unknown x"},
		"followed":      {`{"schema":"wsmount/registry/v1","workspaces":{}} x`, "something follows it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("home/.config/wsmount/registry.json", c.text)
			checkError(t, assert.ErrOf(w.tryResolver()), Invalid, c.words)
		})
	}
	w := newWorld(t)
	assert.OK(t, os.Chmod(w.write("home/.config/wsmount/registry.json", `{"schema":"wsmount/registry/v1"}`), 0o666))
	checkError(t, assert.ErrOf(w.tryResolver()), Denied, "not trusted")
}

// One entry that cannot be read takes nothing from the others, and grants nothing
// itself; it can be removed, whatever stands for its address.
func TestDamagedEntry(t *testing.T) {
	for name, entry := range map[string]string{
		"":        `{"path":"/x"}`,
		"../x":    `{"path":"/x"}`,
		"@acme/b": `{"path":"x"}`,
		"@acme/c": `null`,
		"@acme/d": `{"path":7}`,
		"@acme/e": `{"path":"/x","x":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.workspace("ws", "@acme/ops")
			w.write("home/.config/wsmount/registry.json", `{"schema":"wsmount/registry/v1","workspaces":{"`+name+`":`+entry+`}}`)
			w.add("ws")
			w.ok("@acme/ops", ResolveOptions{})
			list, err := w.resolver().List()
			assert.Must(t, err == nil && len(list) == 2 && (list[0].Damaged == strconv.Quote(name) || list[1].Damaged == strconv.Quote(name)), "list", list, err)
			if a, err := mountspec.ParseAddress(name); err == nil {
				w.refused(name, ResolveOptions{}, Invalid, "damaged")
				w.workspace("again", name)
				w.refused("again/WORKSPACE.md", ResolveOptions{}, Invalid, "damaged")
				checkError(t, assert.ErrOf(w.resolver().Add(t.Context(), w.path("again"), AddOptions{})), Invalid, "damaged")
				_, err = w.resolver().Accept(t.Context(), a, nil)
				checkError(t, err, Invalid, "damaged")
			}
			assert.OK(t, w.resolver().Remove(t.Context(), name))
			list, err = w.resolver().List()
			assert.True(t, err == nil && len(list) == 1 && list[0].Address == acmeOps, "after it", list, err)
		})
	}
}

// A directory without a manifest has no address of its own.
func TestAddDirectoryWithoutManifest(t *testing.T) {
	w := newWorld(t)
	w.mkdir("ws")
	_, err := w.resolver().Add(t.Context(), w.path("ws"), AddOptions{})
	assert.Contains(t, checkError(t, err, Unresolvable, "WORKSPACE.md").Hint, "--id", "hint")
	assert.OK(t, assert.ErrOf(w.resolver().Add(t.Context(), w.path("ws"), AddOptions{Address: acmeOps})))
	w.ok("@acme/ops", ResolveOptions{})
}

func TestConcurrentAdds(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, n := range names {
		w.workspace(n, "@acme/"+n)
	}
	r := w.resolver()
	var wg sync.WaitGroup
	for _, n := range names {
		wg.Go(func() {
			assert.Is(t, assert.ErrOf(r.Add(t.Context(), w.path(n), AddOptions{})), nil)
		})
	}
	wg.Wait()
	assert.Equal(t, len(assert.Of(r.List()).OK(t)), len(names))
}

// A file that goes away can loosen as much as one that changes.
func TestAcceptedFileThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.config = "secrets: { acme-key: { env: ACME_KEY, allow: [ \"@acme/*\" ] } }\n"
	w.manifest("ws", "@acme/ops", `{ inline: { provider: self-bucket, config: { kind: s3, region: eu-west-1, bucket: data, prefix: x }, auth: { state: { env: [ ACME_KEY ] } } } }`)
	gone := w.write("ws/.secrets/SECRETS.md", strings.Replace(secretsMD, "SLUG", "acme-key", 1))
	w.add("ws")
	w.ok("@acme/ops", ResolveOptions{})
	assert.OK(t, os.Remove(gone))
	w.refused("@acme/ops", ResolveOptions{}, Denied, gone, "not what was accepted")
}
