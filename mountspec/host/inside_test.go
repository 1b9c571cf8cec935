package host

import (
	"os"
	"slices"
	"testing"
)

// The attack: a clone that calls itself @acme/app looks into the directory
// where the real one keeps its development files.
func TestScratchOfAnImpostor(t *testing.T) {
	w := newWorld(t)
	w.manifest("real", "@acme/app", scratch)
	w.manifest("fake", "@acme/app", scratch)
	w.add("real")
	real, err := w.resolve("@acme/app", ResolveOptions{Create: true})
	must(t, err)
	fake, err := w.resolve("fake/WORKSPACE.md", ResolveOptions{Create: true})
	if err != nil {
		return // refused for another reason is as good
	}
	if fake.Local.Path == real.Local.Path {
		t.Errorf("an unverified manifest got %s, the registered one's directory", fake.Local.Path)
	}
	again, err := w.resolve("fake/WORKSPACE.md", ResolveOptions{Create: true})
	must(t, err)
	if again.Local.Path != fake.Local.Path {
		t.Errorf("another directory at the second mount: %s, then %s", fake.Local.Path, again.Local.Path)
	}
}

// The attack: a program in the mount turns a link on the way to a governing
// file, and the next mount reads the file that it prepared.
func TestLinkOnTheWayToAGoverningFile(t *testing.T) {
	w := newWorld(t)
	w.write("ws/real/STORAGE.md", "---\nschema: storage/v1\nid: \"@acme/s\"\nversion: 1.0.0\nprovider: local-fs\nconfig: { mount_path: ./data }\n---\n")
	w.mkdir("ws/real/data")
	must(t, os.Symlink("real", w.path("ws/conf")))
	w.manifest("ws", "@acme/app", `{ ref: ./conf/STORAGE.md }`)
	got, err := w.resolve("ws/WORKSPACE.md", ResolveOptions{})
	must(t, err)
	if !slices.Contains(got.Governing, w.path("ws/real/STORAGE.md")) {
		t.Errorf("governing: %q", got.Governing)
	}
	if !slices.Contains(got.Reserved, w.path("ws/conf/STORAGE.md")) {
		t.Errorf("the way there is free to be changed: reserved %q", got.Reserved)
	}
}

// The attack: a workspace whose directory holds the host's configuration; a
// program in the mount grants itself something.
func TestOwnFilesOfTheHost(t *testing.T) {
	w := newWorld(t)
	w.config = "principal: operator://bob\n"
	dir := w.path("home/.config/wsmount/")
	want := []string{dir + "/config.yaml", dir + "/" + registryName}
	if got := w.resolver().OwnFiles(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
