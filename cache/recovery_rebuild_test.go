package cache

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// damage overwrites what the database consists of.
func damage(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "names"), func(path string, d iofs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return spoil(path)
	})
	assert.OK(t, err)
}

// spoil changes every byte of a file.
func spoil(path string) error {
	data, err := os.ReadFile(path)
	for i := range data {
		data[i] ^= 0x55
	}
	return errors.Join(err, os.WriteFile(path, data, 0o600))
}

func TestScan(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("theirs", "theirs", "d/theirs", "theirs", "d/both", "theirs", "read", "read"))
	w.get("read")
	w.do("put d/both ours", "put d/new new", "mkdir e", "put e/same sent")
	w.ok(w.sendAll())
	w.ok(w.put("d/new", "newer"))
	w.tamper("d/both", "changed by another")
	w.stop()
	w.is(assert.ErrOf(Scan(t.Context(), w.o.StateDir, false, nil)), ErrNotDamaged)
	damage(t, w.o.StateDir)
	assert.Must(t, assert.ErrOf(Open(t.Context(), w.p, w.o)) != nil, "a damaged database opened")
	r := assert.Of(Scan(t.Context(), w.o.StateDir, false, nil)).OK(w)
	slices.Sort(r.Restored)
	if got := strings.Join(r.Restored, " "); got != "d/both d/new e/same" || len(r.Skipped)+len(r.Recovered) != 0 || r.Unnamed != 1 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"symbolic links", "empty directories", "renames", "deletions"} {
		assert.True(t, slices.Contains(r.Unknown, want), "it does not say that it cannot find", want)
	}
	assert.Is(t, assert.ErrOf(os.Stat(filepath.Join(r.Aside, "names"))), nil, "the old state")
	w.start()
	w.ok(w.sendAll())
	w.ok(w.sendAll()) // the conflict copies that the first made
	got := listBackend(w.p)
	for _, line := range []string{"d/both: changed by another", "d/theirs: theirs", "e/same: sent", "read: read", "theirs: theirs"} {
		assert.True(t, slices.Contains(got, line), "the backend does not have", line, got)
	}
	for _, content := range []string{"ours", "newer"} { // beside what the backend has
		if !slices.ContainsFunc(got, func(line string) bool {
			return strings.Contains(line, ".conflict-") && strings.HasSuffix(line, ": "+content)
		}) {
			t.Errorf("%q is not there: %q", content, got)
		}
	}
}

// Two files that say the same path are both kept.
func TestScanPutsSecondsAside(t *testing.T) {
	w := newWorld(t, onlyAsked)
	w.do("put f one", "put g two")
	g := w.walk("g")
	w.stop()
	if err := unix.Setxattr(dataFile(t, w.o.StateDir, g), "user.wsmount.path", []byte("f"), 0); err != nil {
		t.Fatal(err) // without extended attributes there is nothing to scan
	}
	damage(t, w.o.StateDir)
	r := assert.Of(Scan(t.Context(), w.o.StateDir, false, nil)).OK(w)
	assert.Must(t, len(r.Restored) == 1 && len(r.Recovered) == 1, r)
	var all []string
	w.start()
	for _, path := range r.Restored {
		all = append(all, w.get(path))
	}
	for _, path := range r.Recovered {
		data := assert.Of(os.ReadFile(filepath.Join(w.o.StateDir, path))).OK(w)
		all = append(all, string(data))
	}
	slices.Sort(all)
	assert.Equal(t, strings.Join(all, " "), "one two", "got", all)
	left, err := Inspect(filepath.Join(r.Aside), 0)
	assert.False(t, err == nil, "the damaged state can be read:", left)
}

// Files that were made in the second before the end do not say their paths yet.
// The database may: its log, or files of it that are not what is damaged.
func TestScanOfTheLastSecond(t *testing.T) {
	for _, c := range []struct{ name, damaged, restored string }{
		{"manifest", "names/db/MANIFEST-*", "d/e/closed d/e/open d/old moved top"},
		{"log", "names/db/log/*.log", ""},
		{"format", "names/format", "d/e/closed d/e/open d/old moved top"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, onlyAsked, holding("read", "read", "d/old", "old"))
			w.get("read")
			w.do("mkdir d/e", "put top top", "put d/e/closed closed", "put removed removed",
				"rm removed", "put x moved", "mv x moved", "put d/old changed")
			o := w.create("d/e/open")
			w.write(o, "open", 0)
			dir := copyState(t, w.v)
			w.ok(w.shut(o))
			unnamed(t, dir)
			paths, err := filepath.Glob(filepath.Join(dir, c.damaged))
			assert.Must(t, err == nil && len(paths) != 0, "nothing is", c.damaged, err)
			for _, path := range paths {
				w.ok(spoil(path))
			}
			r := assert.Of(Scan(t.Context(), dir, false, nil)).OK(w)
			slices.Sort(r.Restored)
			got := strings.Join(r.Restored, " ")
			assert.True(t, got == c.restored && len(r.Skipped)+len(r.Recovered) == 0, r)
			if c.restored == "" {
				return
			}
			w.stop()
			w.o.StateDir = dir
			w.start()
			for path, want := range map[string]string{"d/e/open": "open", "d/e/closed": "closed", "d/old.conflict-" + short("changed"): "changed", "moved": "moved", "top": "top", "read": "read"} {
				assert.Equal(t, w.get(path), want, path)
			}
		})
	}
}

// unnamed takes the paths away that content files say, as if they were not
// written yet.
func unnamed(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "data"), func(path string, d iofs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if err = unix.Removexattr(path, "user.wsmount.path"); errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
				err = nil
			}
		}
		return err
	})
	assert.OK(t, err)
}
