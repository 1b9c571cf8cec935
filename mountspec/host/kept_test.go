package host

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec"
)

// keptWorld has four workspaces in its configuration, one by way of a link, one with a
// link in its storage, and has resolved one of them.
func keptWorld(t *testing.T) *world {
	w := newWorld(t)
	w.places = w.path("state/places")
	w.now = time.Now().Add(time.Hour) // the files are old by then
	w.workspace("a", "@acme/a")
	w.workspace("b", "@acme/b")
	w.workspace("real", "@acme/c")
	w.symlink(w.path("real"), "link")
	w.mkdir("d")
	w.symlink(w.mkdir("data-of-d"), "d/data")
	w.manifest("d", "@acme/d", at(w.path("d/data")))
	w.config = "allow_paths: [ " + w.dir + " ]\nworkspaces:\n"
	for _, name := range []string{"a", "b", "d"} {
		w.config += "  \"@acme/" + name + "\": " + w.path(name) + "\n"
	}
	w.config += "  \"@acme/c\": " + w.path("link") + "\n"
	w.ok("@acme/a", ResolveOptions{})
	return w
}

// read resolves @acme/a and returns of which other workspaces the manifests were read.
func (w *world) read() []string {
	w.t.Helper()
	r := w.resolver()
	reg := assert.Of(r.store.load()).OK(w.t)
	s := r.session(w.t.Context(), reg, ResolveOptions{})
	c := assert.Of(s.finder.find(mountspec.Address{Owner: "acme", Slug: "a"})).OK(w.t)
	assert.OK(w.t, assert.ErrOf(s.resolve(c, nil)))
	maps.DeleteFunc(s.others.places, func(_ string, o otherPlace) bool { return o.kept })
	return slices.Sorted(maps.Keys(s.others.places))
}

var others = []string{"@acme/b", "@acme/c", "@acme/d"}

// Of the manifests of other workspaces those are read that have changed.
func TestUnchangedManifestsAreNotRead(t *testing.T) {
	w := keptWorld(t)
	assert.Slice(t, w.read(), nil, "unchanged")
	w.workspace("b", "@acme/b", "description: new")
	assert.Slice(t, w.read(), []string{"@acme/b"}, "one has changed")
	assert.Slice(t, w.read(), nil, "unchanged again")
	assert.OK(t, os.Chmod(w.path("real/WORKSPACE.md"), 0o644))
	assert.Slice(t, w.read(), []string{"@acme/c"}, "another mode")
	w.config += "principal: user://bob\n"
	assert.Slice(t, w.read(), others, "another configuration")
	w.workspace("e", "@acme/e")
	w.add("e")
	assert.Slice(t, w.read(), others, "another registry")
}

// A file that changed while it was read may do so again and look the same.
func TestFreshManifestsAreReadAgain(t *testing.T) {
	w := keptWorld(t)
	w.workspace("b", "@acme/b", "description: new")
	var st unix.Stat_t
	assert.OK(t, unix.Stat(w.path("b/WORKSPACE.md"), &st))
	now := w.now
	w.now = time.Unix(0, st.Ctim.Nano()).Add(time.Second)
	w.read()
	assert.True(t, slices.Contains(w.read(), "@acme/b"), "it is kept")
	w.now = now
	w.read()
	assert.Slice(t, w.read(), nil, "later")
}

// The attack: a file with places of the attacker's.
func TestKeptPlacesThatAreNotOurs(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *world, data []byte) []byte
	}{
		{"cut off", func(_ *world, data []byte) []byte { return data[:len(data)-1] }},
		{"a byte is another", func(_ *world, data []byte) []byte { data[len(data)/2]++; return data }},
		{"empty", func(*world, []byte) []byte { return nil }},
		{"something else", func(*world, []byte) []byte { return []byte("{}") }},
		{"head only", func(_ *world, data []byte) []byte { return data[:len(keptFormat)+65] }},
		{"others can write it", func(w *world, data []byte) []byte {
			assert.OK(w.t, os.Chmod(w.places, 0o666))
			return data
		}},
		{"of another user", func(w *world, data []byte) []byte {
			tier.RequireRoot(w.t) // to give it away
			assert.OK(w.t, os.Chown(w.places, 12345, 12345))
			return data
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := keptWorld(t)
			assert.OK(t, os.WriteFile(w.places, tt.do(w, assert.Of(os.ReadFile(w.places)).OK(t)), 0o600))
			assert.Slice(t, w.read(), others, "not read anew")
			assert.Slice(t, w.read(), nil, "it is not made again")
		})
	}
}

// What is mounted, and what it is refused for, is as it is and not as it was.
func TestOverlapIsFoundBesideKeptPlaces(t *testing.T) {
	for _, tt := range []struct {
		name, other string
		do          func(w *world)
	}{
		{"a manifest has another storage", "@acme/b", func(w *world) { w.manifest("b", "@acme/b", at(w.path("a/data"))) }},
		{"a link to a workspace is turned", "@acme/c", func(w *world) {
			w.manifest("evil", "@acme/c", at(w.path("a/data")))
			assert.OK(w.t, os.Remove(w.path("link")))
			w.symlink(w.path("evil"), "link")
		}},
		{"a link to its files is turned", "@acme/d", func(w *world) {
			assert.OK(w.t, os.Remove(w.path("d/data")))
			w.symlink(w.path("a/data"), "d/data")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := keptWorld(t)
			tt.do(w)
			w.refused("@acme/a", ResolveOptions{}, Denied, "overlaps", tt.other)
		})
	}
}

// A place that was kept and is wrong refuses nothing, and gives no workspace its files.
func TestKeptPlaceThatIsWrong(t *testing.T) {
	w := keptWorld(t)
	r := w.resolver()
	k := r.keptPlaces(assert.Of(r.store.load()).OK(t))
	assert.Equal(t, len(k.places), len(others))
	p := k.places["@acme/b"]
	p.Dir = w.path("a/data")
	k.places["@acme/b"], k.changed = p, true
	k.save()
	assert.Slice(t, w.read(), []string{"@acme/b"}, "it is looked at")
	got := w.ok("@acme/b", ResolveOptions{})
	assert.True(t, strings.HasSuffix(got.Local.Path, "/b/data"), got.Local.Path)
}
