package host

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
)

// The attack: a clone that calls itself @acme/app looks into the directory
// where the real one keeps its development files.
func TestScratchOfAnImpostor(t *testing.T) {
	w := newWorld(t)
	w.manifest("real", "@acme/app", scratch)
	w.manifest("fake", "@acme/app", scratch)
	w.add("real")
	real := assert.Of(w.resolve("@acme/app", ResolveOptions{Create: true})).OK(t)
	fake, err := w.resolve("fake/WORKSPACE.md", ResolveOptions{Create: true})
	if err != nil {
		return // refused for another reason is as good
	}
	assert.True(t, fake.Local.Path != real.Local.Path, "an unverified manifest got", fake.Local.Path, "the registered one's directory")
	again := assert.Of(w.resolve("fake/WORKSPACE.md", ResolveOptions{Create: true})).OK(t)
	assert.Equal(t, again.Local.Path, fake.Local.Path, "another directory at the second mount")
}

// The attack: a program in the mount turns a link on the way to a governing
// file, and the next mount reads the file that it prepared.
func TestLinkOnTheWayToAGoverningFile(t *testing.T) {
	w := newWorld(t)
	w.write("ws/real/STORAGE.md", "---\nschema: storage/v1\nid: \"@acme/s\"\nversion: 1.0.0\nprovider: local-fs\nconfig: { mount_path: ./data }\n---\n")
	w.mkdir("ws/real/data")
	assert.OK(t, os.Symlink("real", w.path("ws/conf")))
	w.manifest("ws", "@acme/app", `{ ref: ./conf/STORAGE.md }`)
	got := assert.Of(w.resolve("ws/WORKSPACE.md", ResolveOptions{})).OK(t)
	assert.True(t, slices.Contains(got.Governing, w.path("ws/real/STORAGE.md")), "governing:", got.Governing)
	assert.True(t, slices.Contains(got.Reserved, w.path("ws/conf/STORAGE.md")), "the way there is free to be changed: reserved", got.Reserved)
}

// The attack: a workspace whose directory holds the host's configuration, or the
// place where it would be; a program in the mount grants itself something.
func TestOwnPlacesOfTheHost(t *testing.T) {
	w := newWorld(t)
	w.mkdir("real")
	w.symlink(w.path("real"), "link")
	w.write("sp/ws/WORKSPACE.md", "")
	w.config = "workspaces: { \"@bob/b\": { path: " + w.mkdir("b") + " } }\nstorages: { \"@acme/s\": " + w.path("s.STORAGE.md") + " }\n" +
		"search_path: [ " + w.path("sp") + ", " + w.path("sp/ws") + ", " + w.path("none") + " ]\n" +
		"secrets: { x: { file: " + w.path("link/pw") + " }, y: { command: [ sh, " + w.path("get.sh") + ", --key=" + w.path("key") + " ] } }\n"
	got := w.resolver().Own()
	dir := w.path("home/.config/wsmount/")
	for _, want := range []string{w.path("b/WORKSPACE.md"), dir + "/config.yaml", dir + "/" + RegistryName, dir + "/" + RegistryName + ".lock", w.path("s.STORAGE.md"),
		w.path("link"), w.path("real/pw"), w.path("get.sh"), w.path("key"), w.path("sp/ws/WORKSPACE.md"), w.path("home/.agentproto/workspaces.json")} {
		assert.True(t, slices.Contains(got.Files, want), want, "may be written:", got.Files)
	}
	assert.True(t, slices.Contains(got.Dirs, dir), "directories", got.Dirs, "want", dir)
	assert.Slice(t, got.Searched, []string{w.path("none"), w.path("sp")}, "searched")
}

// A configuration may not be there yet, or not the one that was read.
func TestEveryPlaceOfAConfigurationIsKnown(t *testing.T) {
	w := newWorld(t)
	given := w.write("given/c.yaml", "{}")
	env := map[string]string{"XDG_CONFIG_HOME": w.path("xdg")}
	o := LoadOptions{Home: w.home, System: w.path("etc"), Lookup: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}
	for _, o.Path = range []string{"", given} {
		c := assert.Of(LoadConfig(o)).OK(t)
		for _, want := range []string{o.Path, w.path("xdg/wsmount/config.yaml"), w.home + "/.config/wsmount/config.yaml", w.path("etc/config.yaml")} {
			assert.False(t, want != "" && !slices.Contains(c.Places, want), want, "is missing in", c.Places)
		}
	}
}

// The attack: a workspace without a manifest in its directory lies in the search
// path, under the name of an owner; a program in it makes a workspace of theirs.
func TestSearchPathEndsAtRegisteredFiles(t *testing.T) {
	w := newWorld(t)
	w.config = "search_path: [ " + w.mkdir("sp") + " ]\n"
	w.workspace("sp/acme/ops", "@acme/ops")
	w.ok("@acme/ops", ResolveOptions{})
	assert.OK(t, assert.ErrOf(w.resolver().Add(t.Context(), w.path("sp/acme"), AddOptions{Address: mountspec.Address{Owner: "bob", Slug: "b"}})))
	w.refused("@acme/ops", ResolveOptions{}, Unresolvable, "@acme/ops")
}

// The attack: another user of the machine writes a policy that a manifest
// refers to, where only the manifest's own mode was looked at.
func TestReferredFilesThatOthersCanWrite(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/app", "policy: { file: ./POLICY.md }")
	policy := w.write("ws/POLICY.md", "---\nschema: policy/v1\nid: \"@acme/pol\"\nversion: 1.0.0\ngrants:\n  - principal: \"*\"\n    actions: [ { action: \"storage:*\" } ]\n---\n")
	w.config = "workspaces: { \"@acme/app\": { path: " + w.path("ws") + " } }\n"
	w.ok("@acme/app", ResolveOptions{})
	assert.OK(t, os.Chmod(policy, 0o666))
	w.refused("@acme/app", ResolveOptions{}, Unresolvable, "POLICY.md")
}

// The attack: a second owner takes the name of the first, and with it what is
// granted to that name.
func TestOwnerNameIsTaken(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/app")
	w.add("ws")
	path := w.workspace("squat", "@acme/squat")
	text := assert.Of(os.ReadFile(path)).OK(t)
	assert.OK(t, os.WriteFile(path, []byte(strings.Replace(string(text), "ID-acme", "ANOTHER", 1)), 0o600))
	_, err := w.resolver().Add(t.Context(), w.path("squat"), AddOptions{})
	checkError(t, err, Denied, "two owners", "@acme/app")
}

// The attack: a bind mount gives another workspace's directory a second path.
func TestOverlapThroughABindMount(t *testing.T) {
	tier.RequireRoot(t) // to bind a directory
	w := newWorld(t)
	w.workspace("a", "@acme/a")
	w.add("a")
	alias := w.mkdir("b/data")
	assert.OK(t, unix.Mount(w.path("a/data"), alias, "", unix.MS_BIND, ""))
	t.Cleanup(func() { assert.OK(t, unix.Unmount(alias, unix.MNT_DETACH)) })
	w.manifest("b", "@acme/b", here)
	w.refused("b/WORKSPACE.md", ResolveOptions{}, Denied, "overlaps", "@acme/a")
}

// The attack: a bind mount of a directory inside another workspace's. Nothing above
// the second path is the other workspace, nor anything above the first the bind.
func TestOverlapThroughABindMountOfAPart(t *testing.T) {
	for _, c := range []struct {
		name, bound, first, second string
		want                       bool
	}{
		{"the part itself", "tree/deep", "tree", "alias", true},
		{"the part first", "tree/deep", "alias", "tree", true},
		{"below the part", "tree/deep", "tree", "alias/data", true},
		{"not there yet", "tree/deep", "tree", "alias/new", true},
		{"a directory above it", "tree", "tree/deep/data", "alias", true},
		{"two parts of one", "tree", "tree/deep", "alias/deep/data", true},
		{"a name with a space", "tree/with space", "tree", "alias", true},
		{"two parts that lie side by side", "tree/deep", "alias", "tree/deeper", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inOwnMounts(t)
			w := newWorld(t)
			w.mkdir("tree/deep/data")
			w.mkdir("tree/with space")
			w.mkdir("tree/deeper")
			bind(t, w.path(c.bound), w.mkdir("alias"))
			a := Location{Service: ServiceDir, Prefix: w.path(c.first)}
			b := Location{Service: ServiceDir, Prefix: w.path(c.second)}
			assert.Equal(t, a.SharesBytes(b, ondisk.New()), c.want, a, "and", b, "share bytes")
		})
	}
	t.Run("in one mount", func(t *testing.T) {
		inOwnMounts(t)
		w := newWorld(t)
		w.config += "allow_paths: [ " + w.dir + " ]\n"
		w.mkdir("tree/deep")
		bind(t, w.path("tree/deep"), w.mkdir("alias"))
		w.manifest("a", "@acme/a", at(w.path("tree")))
		w.manifest("b", "@acme/b", at(w.path("alias")))
		m := mountspec.Mount{At: "/x", Source: mountspec.Ref{Kind: mountspec.RefPath, Value: "./b"}}
		w.refused("a/WORKSPACE.md", ResolveOptions{Mounts: []mountspec.Mount{m}, Dir: w.dir, Trust: true}, Denied, "one place")
	})
}

// inOwnMounts gives the test's goroutine a mount name space of its own, which ends
// with it.
func inOwnMounts(t *testing.T) {
	t.Helper()
	tier.RequireRoot(t)    // to bind a directory
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	assert.OK(t, unix.Unshare(unix.CLONE_NEWNS))
	assert.OK(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
}

func bind(t *testing.T, from, at string) {
	t.Helper()
	assert.OK(t, unix.Mount(from, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { assert.OK(t, unix.Unmount(at, unix.MNT_DETACH)) })
}

// A manifest of the configuration that cannot be read hides where its workspace
// lies, but not that it lies somewhere.
func TestOverlapWithAnUnreadableManifest(t *testing.T) {
	w := newWorld(t)
	w.write("broken/WORKSPACE.md", "---\nschema: workspace/v1\nnonsense: 1\n---\n")
	w.mkdir("broken/data")
	w.config += "workspaces: { \"@acme/broken\": { path: " + w.path("broken") + " } }\nallow_paths: [ " + w.dir + " ]\n"
	w.manifest("b", "@acme/b", at(w.path("broken/data")))
	w.refused("b/WORKSPACE.md", ResolveOptions{Trust: true}, Denied, "overlaps", "@acme/broken")
	w.workspace("c", "@acme/c")
	w.add("c")
	r := assert.Of(w.resolver().Resolve(t.Context(), "@acme/c", ResolveOptions{})).OK(t)
	if !slices.ContainsFunc(r.Warnings, func(f mountspec.Finding) bool {
		return f.Rule == "overlap-unknown" && strings.Contains(f.Message, "@acme/broken")
	}) {
		t.Errorf("nothing is said of the workspace that cannot be compared: %v", r.Warnings)
	}
}

// Who registers a workspace that locks another one out is told, with what to do;
// a grant of the host makes it silent.
func TestAddSaysWhatItOverlaps(t *testing.T) {
	w := newWorld(t)
	w.manifest("notes", "@acme/notes", at(w.path("notes")))
	w.add("notes")
	w.workspace("beside", "@acme/beside")
	w.workspace("notes/sub", "@acme/sub")
	w.config = "workspaces: { \"@acme/listed\": { path: " + w.workspace("notes/sub/data/in", "@acme/listed") + " } }\n"
	notes := func(rel string) string {
		t.Helper()
		return strings.Join(assert.Of(w.resolver().Add(t.Context(), w.path(rel), AddOptions{})).OK(t).Notes, "\n")
	}
	assert.Equal(t, notes("beside"), "", "beside")
	for _, again := range []string{"", "again"} {
		got := notes("notes/sub")
		for _, want := range []string{w.path("notes") + " of @acme/notes", "@acme/listed", "registry remove", `allow_overlap: [{from: "@acme/sub", to: "@acme/notes"}]`} {
			assert.Contains(t, got, want, again)
		}
	}
	w.config += "allow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\n"
	assert.Equal(t, notes("notes/sub"), "", "granted")
}

// What a workspace may not have at all is said before what it would share, and an
// overlap makes no directory.
func TestGrantComesBeforeOverlap(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops")
	w.add("ws")
	w.manifest("all", "@acme/all", at("/"))
	w.refused("all/WORKSPACE.md", ResolveOptions{Trust: true}, Denied, "allow_paths")
	w.config = "allow_paths: [ " + w.dir + " ]\n"
	w.manifest("dev", "@acme/dev", `{ inline: { provider: dev-local, config: { root: "`+w.path("ws/data/new")+`" } } }`)
	w.refused("dev/WORKSPACE.md", ResolveOptions{Trust: true, Create: true}, Denied, "overlaps")
	assert.True(t, assert.ErrOf(os.Stat(w.path("ws/data/new"))) != nil, "the directory was made")
}
