package fs

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestPartsThatCannotStandTogether(t *testing.T) {
	root := Part{Name: "@a/root", Volume: newFake()}
	for _, tt := range []struct {
		name  string
		parts []Part
		want  string
	}{
		{"none", nil, "root"},
		{"no root", []Part{{At: "x", Volume: newFake()}}, "root"},
		{"two at one place", []Part{root, {Name: "@a/b", At: "x", Volume: newFake()}, {Name: "@a/c", At: "/x/", Volume: newFake()}}, "two volumes"},
		{"above the root", []Part{root, {At: "../x", Volume: newFake()}}, "plain path"},
		{"not normal", []Part{root, {At: "a//b", Volume: newFake()}}, "plain path"},
		{"in .wsmount", []Part{root, {At: ".wsmount/x", Volume: newFake()}}, "wsmount's own"},
		{"in .wsmount of a part", []Part{root, {At: "a", Volume: newFake()}, {At: "a/.wsmount", Volume: newFake()}}, "wsmount's own"},
		{"governing file outside", []Part{{Volume: newFake(), Governing: []string{"../WORKSPACE.md"}}}, "plain path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newTree(tt.parts, ".wsmount", "/mnt")
			assert.True(t, err != nil && strings.Contains(err.Error(), tt.want), "error", err, "want one with", tt.want)
		})
	}
}

// composed is a root with parts at a path that exists, one that does not, one
// hidden behind a file, one beside a name that begins alike, and one nested.
func composed(t *testing.T) (*world, map[string]*fakeVolume) {
	v := map[string]*fakeVolume{
		"":              newFake("abcde/own", "lib/real/hidden", "lib/mine", "file", "top"),
		"abcd":          newFake("in-abcd"),
		"lib/real":      newFake("in-real", "deep/"),
		"made/up/here":  newFake("in-gap"),
		"file/under":    newFake("in-file"),
		"lib/real/deep": newFake("in-deep"),
	}
	parts := []Part{{Name: "root", Volume: v[""]}}
	for _, at := range []string{"lib/real/deep", "abcd", "file/under", "made/up/here", "lib/real"} {
		parts = append(parts, Part{Name: at, At: at, Volume: v[at]})
	}
	return newWorld(t, parts...), v
}

// sided is a volume that remembers what it was told to show beside its names.
type sided struct {
	*fakeVolume
	root    string
	covered []string
}

func (v *sided) Aside(root string, covered []string) Aside {
	v.root, v.covered = root, covered
	return Aside{}
}

// A volume is told where it stands, and which of its places others cover: what it says of
// its files to programs must not be about those of others.
func TestVolumeKnowsWhatIsCovered(t *testing.T) {
	root, lib := &sided{fakeVolume: newFake()}, &sided{fakeVolume: newFake()}
	newWorld(t, Part{Volume: root}, Part{At: "lib", Volume: lib}, Part{At: "lib/deep/er", Volume: newFake()}, Part{At: "x", Volume: newFake()})
	assert.Equal(t, root.root, "/mnt")
	assert.Slice(t, root.covered, []string{"lib", "x"})
	assert.Equal(t, lib.root, "/mnt/lib")
	assert.Slice(t, lib.covered, []string{"deep/er"})
}

func TestLookupIsComposed(t *testing.T) {
	w, _ := composed(t)
	for _, tt := range []struct {
		path string
		want fuse.Status
	}{
		{"abcde/own", fuse.OK}, // not swallowed by abcd
		{"abcd/in-abcd", fuse.OK},
		{"abcd/own", fuse.ENOENT},
		{"lib/mine", fuse.OK},
		{"lib/real/in-real", fuse.OK},
		{"lib/real/hidden", fuse.ENOENT},
		{"lib/real/deep/in-deep", fuse.OK},
		{"made/up/here/in-gap", fuse.OK},
		{"made/up/other", fuse.ENOENT},
		{"file/under/in-file", fuse.OK},
		{".wsmount", fuse.OK},
		{"lib/real/.wsmount", fuse.OK},
		{"lib/.wsmount", fuse.ENOENT},
	} {
		t.Run(tt.path, func(t *testing.T) {
			_, st := w.walk(tt.path)
			assert.True(t, st == tt.want, "lookup:", st, "want", tt.want)
		})
	}
}

// A mount point whose name begins like another's lies in the root, not in the
// other part.
func TestMountPointsWithACommonStem(t *testing.T) {
	w := newWorld(t,
		Part{Name: "root", Volume: newFake("abcde/hidden")},
		Part{Name: "short", At: "abcd", Volume: newFake("in-short")},
		Part{Name: "long", At: "abcde", Volume: newFake("in-long")})
	for path, want := range map[string]fuse.Status{
		"abcd/in-short": fuse.OK,
		"abcde/in-long": fuse.OK,
		"abcde/hidden":  fuse.ENOENT,
		"abcd/e":        fuse.ENOENT,
	} {
		_, st := w.walk(path)
		assert.True(t, st == want, "lookup", path, st, "want", want)
	}
	for path, want := range map[string][]string{"": {"abcd", "abcde"}, "abcd": {"in-short"}, "abcde": {"in-long"}} {
		got := w.list(path, 4096, false)
		assert.True(t, slices.Equal(got, want), "list", path, "=", got, "want", want)
	}
}

func TestListingIsComposed(t *testing.T) {
	w, _ := composed(t)
	for _, tt := range []struct {
		path string
		want []string
	}{
		{"", []string{"abcd", "abcde", "file", "lib", "made", "top"}},
		{"lib", []string{"mine", "real"}},
		{"lib/real", []string{"deep", "in-real"}},
		{"made", []string{"up"}},
		{"made/up", []string{"here"}},
		{"file", []string{"under"}},
	} {
		for _, plus := range []bool{false, true} {
			// A small buffer gives one or two entries a request, so that every
			// cookie is used.
			for _, size := range []int{200, 4096} {
				got := w.list(tt.path, size, plus)
				assert.True(t, slices.Equal(got, tt.want), "list", tt.path, "(plus", plus, size, "bytes) =", got, "want", tt.want)
			}
		}
	}
}

func TestInodeNumbersOfPartsDiffer(t *testing.T) {
	w, _ := composed(t)
	seen := map[uint64]string{}
	for _, p := range []string{"top", "abcd/in-abcd", "lib/real/in-real", "made/up/here/in-gap", "abcd", "lib/real", ".wsmount"} {
		out := w.mustWalk(p)
		if old, ok := seen[out.Ino]; ok {
			t.Errorf("%s and %s have st_ino %#x", old, p, out.Ino)
		}
		seen[out.Ino] = p
	}
}

func TestMountPointsHold(t *testing.T) {
	w, v := composed(t)
	root := header(1)
	lib := header(w.mustWalk("lib").NodeId)
	for _, tt := range []struct {
		name string
		got  func() fuse.Status
		want syscall.Errno
	}{
		{"rmdir a mount point", func() fuse.Status { return w.Rmdir(nil, &lib, "real") }, syscall.EBUSY},
		{"rmdir what leads to one", func() fuse.Status { return w.Rmdir(nil, &root, "lib") }, syscall.EBUSY},
		{"unlink what a mount point hides", func() fuse.Status { return w.Unlink(nil, &root, "file") }, syscall.EBUSY},
		{"rename a mount point", func() fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: 1}, "abcd", "x")
		}, syscall.EBUSY},
		{"rename over a mount point", func() fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: 1}, "top", "abcd")
		}, syscall.EBUSY},
		{"rename over a mount point, noreplace", func() fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: 1, Flags: unix.RENAME_NOREPLACE}, "top", "abcd")
		}, syscall.EEXIST},
		{"rename across parts", func() fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: w.mustWalk("abcd").NodeId}, "top", "x")
		}, syscall.EXDEV},
		{"link across parts", func() fuse.Status {
			var out fuse.EntryOut
			return w.Link(nil, &fuse.LinkIn{InHeader: root, Oldnodeid: w.mustWalk("abcd/in-abcd").NodeId}, "x", &out)
		}, syscall.EXDEV},
		{"mkdir in a gap", func() fuse.Status {
			var out fuse.EntryOut
			return w.Mkdir(nil, &fuse.MkdirIn{InHeader: header(w.mustWalk("made/up").NodeId)}, "x", &out)
		}, syscall.EROFS},
		{"mkdir .wsmount", func() fuse.Status {
			var out fuse.EntryOut
			return w.Mkdir(nil, &fuse.MkdirIn{InHeader: root}, ".wsmount", &out)
		}, syscall.EEXIST},
		{"rename to .wsmount", func() fuse.Status {
			return w.Rename(nil, &fuse.RenameIn{InHeader: root, Newdir: 1}, "top", ".wsmount")
		}, syscall.EBUSY},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.got(), fuse.Status(tt.want))
		})
	}
	for at, vol := range v {
		assert.True(t, len(vol.changed) == 0, "changes reached the volume at", at, vol.changed)
	}
}

// A directory made at a gap's name is bound at once: the kernel does not look
// up what it has just made.
func TestReferencesAreGivenBack(t *testing.T) {
	w, v := composed(t)
	for range 3 {
		w.list("", 4096, true) // looks up every entry, as the kernel counts
	}
	out := w.mustWalk("file/under/in-file")
	w.Forget(out.NodeId, 1)
	for ino, n := range v["file/under"].refs {
		assert.Equal(t, n, 0, "inode", ino, "of the part has references left")
	}
	file := v[""].make("file")
	assert.Equal(t, v[""].refs[file], 0, "the hidden file has references that the kernel will never give back")
}
