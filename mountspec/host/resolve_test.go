package host

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

func TestResolveRegistered(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops")
	w.add("ws")
	got := w.ok("@acme/ops", ResolveOptions{})
	if got.Address != acmeOps || got.Trust != Registered || !got.Verified || got.ReadOnly.On() || got.Root != w.path("ws") ||
		got.Manifest != w.path("ws/WORKSPACE.md") || len(got.Fingerprint) != 32 {
		t.Errorf("got %+v", got)
	}
	l := got.Local
	assert.True(t, l.Path == w.path("ws/data") && l.Ino != 0 && !l.Missing, "local", l)
	assert.Slice(t, got.Governing, []string{w.path("ws/WORKSPACE.md")}, "governing")
	for _, want := range []string{"registry", "manifest: " + w.path("ws/WORKSPACE.md"), "storage: local-fs", "sync.mode: watch (default)", "below the workspace's own directory", "fingerprint"} {
		assert.Contains(t, explained(got), want)
	}
	byPath := w.ok("ws", ResolveOptions{})
	assert.True(t, byPath.Trust == Registered && byPath.Fingerprint == got.Fingerprint, "by path:", byPath.Trust, byPath.Fingerprint)
}

func TestResolveUnverifiedAndVouched(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops")
	got := w.ok("ws", ResolveOptions{})
	assert.True(t, !got.Verified && got.Trust.String() == "unverified" && !got.ReadOnly.On(), "got", got.Trust, got.ReadOnly)
	got = w.ok("ws/WORKSPACE.md", ResolveOptions{Trust: true})
	assert.True(t, got.Verified && got.Trust.String() == "trusted", "got", got.Trust)
	assert.Equal(t, assert.Of(w.resolver().Resolve(t.Context(), "ws", ResolveOptions{Dir: w.dir})).OK(t).Root, w.path("ws"), "relative")
	checkError(t, assert.ErrOf(w.resolver().Resolve(t.Context(), "ws", ResolveOptions{})), Unresolvable)
}

func TestReadOnlyReasons(t *testing.T) {
	for _, c := range []struct {
		name, storage string
		more          []string
		config        string
		o             ResolveOptions
		want          string // sources, in order
		passes        bool   // that it is read-only
	}{
		{name: "none", storage: here},
		{name: "flag", storage: here, o: ResolveOptions{ReadOnly: true}, want: "flag"},
		{name: "defaults", storage: here, more: []string{"defaults: { read_only: true }"}, want: "defaults"},
		{name: "storage", storage: `{ inline: { provider: local-fs, config: { mount_path: ./data }, read_only: true } }`, want: "storage"},
		{name: "storage does not loosen defaults", storage: `{ inline: { provider: local-fs, config: { mount_path: ./data }, read_only: false } }`, more: []string{"defaults: { read_only: true }"}, want: "defaults"},
		{name: "policy", storage: here, config: "principal: operator://bob\n", more: []string{`policy: { schema: policy/v1, grants: [ { principal: "operator://bob", actions: [ { action: "storage:read" } ] } ] }`}, want: "policy"},
		{name: "policy at another time", storage: here, config: "principal: operator://bob\n", more: []string{`policy: { schema: policy/v1, grants: [ { principal: "operator://bob", actions: [ { action: "storage:read" } ] }, { principal: "operator://bob", actions: [ { action: "storage:write" } ], conditions: [ { kind: during-business-hours } ] } ] }`}, want: "policy", passes: true},
		{name: "policy's defaults", storage: here, config: "principal: operator://bob\n", more: []string{`policy: { schema: policy/v1, grants: [ { principal: "operator://bob", actions: [ { action: "storage:*" } ] } ], defaults: { storage: { read_only: true } } }`}, want: "policy"},
		{name: "all", storage: `{ inline: { provider: local-fs, config: { mount_path: ./data }, read_only: true } }`, more: []string{"defaults: { read_only: true }"}, o: ResolveOptions{ReadOnly: true}, want: "flag defaults storage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = c.config
			w.mkdir("ws/data")
			w.manifest("ws", "@acme/ops", c.storage, c.more...)
			w.add("ws")
			got := w.ok("@acme/ops", c.o)
			var sources []string
			for _, r := range got.ReadOnly.Reasons {
				sources = append(sources, r.Source)
				assert.False(t, r.Where == "", r.Source, "says not where")
			}
			assert.Equal(t, strings.Join(sources, " "), c.want)
			assert.Equal(t, got.ReadOnly.On() && !got.ReadOnly.Lasting().On(), c.passes, "whether it passes")
		})
	}
}

func TestPolicy(t *testing.T) {
	w := newWorld(t)
	w.config = "principal: operator://bob\n"
	w.workspace("ws", "@acme/ops", `policy: { ref: ./team.POLICY.md }`)
	policy := func(grants string) {
		w.write("ws/team.POLICY.md", "---\nschema: policy/v1\ngrants: "+grants+"\n---\n")
	}
	policy(`[ { principal: "operator://bob", actions: [ { action: "storage:read" }, { action: "storage:write" } ], granted_at: 2026-11-20T11:00:00Z, ttl_seconds: 7200 } ]`)
	got := w.ok("ws", ResolveOptions{Trust: true})
	assert.True(t, !got.ReadOnly.On() && got.HoldCommit && got.HoldPush, "read-only", got.ReadOnly, "hold commit", got.HoldCommit, "push", got.HoldPush)
	assert.True(t, slices.Contains(got.Governing, w.path("ws/team.POLICY.md")), "governing", got.Governing)
	later := got.Evaluate("storage:write", w.now.Add(2*60*60*1e9), nil)
	assert.False(t, later.Allow, "a grant did not end")
	policy(`[ { principal: "operator://eve", actions: [ { action: "storage:*" } ] } ]`)
	w.refused("ws", ResolveOptions{Trust: true}, Denied, "does not let operator://bob read")
	assert.Contains(t, w.log(), `"decision":"deny"`, "the denial is not in the audit log")
}

func TestRolesAndOwnerRule(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops")
	w.add("ws")
	got := w.ok("@acme/ops", ResolveOptions{})
	assert.True(t, strings.HasPrefix(got.Principal, "user://"), "principal", got.Principal)
	w.config = "roles: { \"@acme/*\": [viewer] }\n"
	w.refused("@acme/ops", ResolveOptions{}, Denied, "no-grant")
}

func TestWithoutManifest(t *testing.T) {
	w := newWorld(t)
	w.mkdir("plain")
	_, err := w.resolver().Add(t.Context(), w.path("plain"), AddOptions{Address: mountspec.Address{Owner: "acme", Slug: "plain"}, OwnerID: "ID-acme"})
	assert.OK(t, err)
	got := w.ok("@acme/plain", ResolveOptions{})
	// The attack: a program in the mount writes the manifest of the next one.
	assert.Slice(t, got.Reserved, []string{w.path("plain/WORKSPACE.md")}, "reserved")
	assert.True(t, got.Manifest == "" && got.Local.Path == w.path("plain") && got.Storage.Provider == "local-fs" && got.Trust == Registered, "got", got)
	// A manifest that appears later is not what was accepted.
	w.workspace("plain", "@acme/plain")
	w.refused("@acme/plain", ResolveOptions{}, Denied)

	w.workspace("ws", "@acme/ops")
	w.add("ws")
	assert.OK(t, os.Remove(w.path("ws/WORKSPACE.md")))
	got = w.ok("@acme/ops", ResolveOptions{})
	assert.True(t, got.Local.Path == w.path("ws/data"), "the recorded manifest is not used:", got.Local)
	w.refused("none", ResolveOptions{}, Unresolvable, "does not exist")
	_, err = w.resolver().Resolve(t.Context(), "acme/plain", ResolveOptions{Dir: w.path(".")})
	assert.Contains(t, checkError(t, err, Unresolvable, "acme/plain: does not exist").Hint, "write @acme/plain")
}

func TestDevLocal(t *testing.T) {
	w := newWorld(t)
	w.manifest("ws", "@acme/dev", scratch)
	got := w.ok("ws", ResolveOptions{})
	assert.True(t, got.Local.Missing && got.Local.Default, "looking made something", got.Local)
	assert.True(t, assert.ErrOf(os.Stat(got.Local.Path)) != nil, "looking made the directory")
	got = w.ok("ws", ResolveOptions{Create: true})
	st := assert.Of(os.Stat(got.Local.Path)).OK(t)
	if got.Local.Missing || got.Local.Ino == 0 || st.Mode().Perm() != 0o700 || !strings.HasPrefix(got.Local.Path, w.path("tmp/wsmount-")) {
		t.Errorf("local %+v, mode %v", got.Local, st.Mode())
	}
	// The attack: another user made the directory first, or can open it.
	assert.OK(t, os.Chmod(w.path("tmp"), 0o777|os.ModeSticky))
	assert.OK(t, os.Chmod(got.Local.Path, 0o777))
	w.refused("ws", ResolveOptions{Create: true}, Denied, "only the user can open")
	assert.OK(t, os.Remove(got.Local.Path))
	w.mkdir("elsewhere")
	assert.OK(t, os.Symlink(w.path("elsewhere"), got.Local.Path))
	w.refused("ws", ResolveOptions{Create: true}, Denied)
}

// What the search path led to and was not taken is said, with why, and so is
// everything that was looked at.
func TestSkippedManifestsAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, where, why string
		spoil            func(w *world)
	}{
		{"the search path is open to others", "sp", "others can write", func(w *world) { assert.OK(w.t, os.Chmod(w.path("sp"), 0o777)) }},
		{"its directory is", "sp/ops", "others can write", func(w *world) { assert.OK(w.t, os.Chmod(w.path("sp/ops"), 0o777)) }},
		{"the manifest is", "sp/ops/WORKSPACE.md", "written by others", func(w *world) { assert.OK(w.t, os.Chmod(w.path("sp/ops/WORKSPACE.md"), 0o666)) }},
		{"another owner than its id", "sp/ops/WORKSPACE.md", "owner", func(w *world) { w.edit("sp/ops/WORKSPACE.md", "slug: acme", "slug: evil") }},
		{"not a manifest", "sp/ops/WORKSPACE.md", "not valid", func(w *world) { w.write("sp/ops/WORKSPACE.md", "---\n{\n---\n") }},
		{"a link", "sp/ops/WORKSPACE.md", "not a regular file", func(w *world) {
			assert.OK(w.t, os.Rename(w.path("sp/ops/WORKSPACE.md"), w.path("w.md")))
			w.symlink(w.path("w.md"), "sp/ops/WORKSPACE.md")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = "search_path: [ " + w.mkdir("sp") + " ]\n"
			w.workspace("sp/ops", "@acme/ops")
			w.ok("@acme/ops", ResolveOptions{})
			c.spoil(w)
			e := w.refused("@acme/ops", ResolveOptions{}, Unresolvable, "no workspace")
			if len(e.Skipped) != 1 || !strings.HasPrefix(e.Skipped[0], w.path(c.where)+": ") || !strings.Contains(e.Skipped[0], c.why) ||
				strings.Count(e.Skipped[0], w.path(c.where)+":") != 1 || !strings.Contains(e.Hint, "skipped") {
				t.Errorf("skipped %q, hint %q; want %s: %s", e.Skipped, e.Hint, c.where, c.why)
			}
			assert.True(t, slices.ContainsFunc(e.Steps, func(s Step) bool { return s.Subject == w.path(c.where) && strings.HasPrefix(s.Result, "skipped: ") }), "steps", e.Steps)
		})
	}
}

// A refusal on the way has the steps up to it, those of the workspaces that led
// there first.
func TestRefusalsHaveTheirSteps(t *testing.T) {
	w := newWorld(t)
	w.manifest("lib", "@acme/lib", s3("https://minio.acme.test", "data", "x", ""))
	w.workspace("ws", "@acme/ops", "mounts: [ { at: /lib, source: \"@acme/lib\" } ]")
	w.add("lib")
	w.add("ws")
	e := w.refused("@acme/ops", ResolveOptions{}, Denied, "not granted")
	var manifests []string
	for _, s := range e.Steps {
		if s.Subject == "manifest" {
			manifests = append(manifests, s.Result)
		}
	}
	want := []string{w.path("ws/WORKSPACE.md"), w.path("lib/WORKSPACE.md")}
	assert.True(t, slices.Equal(manifests, want), "manifests of the steps", manifests, want)
}
