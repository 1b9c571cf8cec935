package offline

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// spoil changes every byte of the files of a working copy that match.
func spoil(t *testing.T, dir string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		paths := assert.Of(filepath.Glob(filepath.Join(dir, pattern))).OK(t)
		assert.Must(t, len(paths) > 0, "nothing is", pattern)
		for _, path := range paths {
			data := assert.Of(os.ReadFile(path)).OK(t)
			for i := range data {
				data[i] ^= 0x55
			}
			assert.OK(t, os.WriteFile(path, data, 0o600))
		}
	}
}

// scanned is what a scan of a working copy says, and the run after it.
func scanned(t *testing.T, dir string) (ScanReport, *run) {
	t.Helper()
	report := assert.Of(Scan(t.Context(), dir, false, nil)).OK(t)
	slices.Sort(report.Restored)
	assert.Equal(t, len(report.Skipped), 0, "skipped", report.Skipped)
	r := begin(t, dir, "")
	t.Cleanup(func() { assert.OK(t, r.Close()) })
	return report, r
}

// text is the content of a path.
func (r *run) text(path string) string {
	r.Helper()
	f := assert.Of(r.Content.Open(r.ino(path))).OK(r)
	defer f.Release()
	text := make([]byte, f.Size())
	assert.OK(r, assert.ErrOf(recovery.Raw(f).ReadAt(text, 0)))
	return string(text)
}

// damaged is all of a database.
var damaged = []string{"names/format", "names/db/MANIFEST-*", "names/db/log/*.log"}

// Of a database that is damaged what its content files say is made anew, as files that are
// new, in directories that the remote is taken to have. The old state is set aside.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	assert.Is(t, assert.ErrOf(Scan(t.Context(), dir, true, nil)), iofs.ErrNotExist, "of nothing")
	r := begin(t, dir, "")
	r.theirs("theirs", "d/read")
	r.Content.Remove(r.ino("theirs"))
	r.puts("d/new", "new")
	r.writes("d/read", "ours", true)
	assert.Is(t, assert.ErrOf(Scan(t.Context(), dir, true, nil)), state.ErrInUse)
	r.ends()
	assert.OK(t, recovery.WriteOut(filepath.Join(dir, recovery.Dir), "before", strings.NewReader("before")))
	assert.Is(t, assert.ErrOf(Scan(t.Context(), dir, false, nil)), ErrNotDamaged)
	spoil(t, dir, damaged...)
	report, r := scanned(t, dir)
	assert.Slice(t, report.Restored, []string{"d/new", "d/read"}, "restored")
	assert.Equal(t, len(report.Recovered)+report.Unnamed+report.Kept, 0, report)
	assert.OK(t, assert.ErrOf(os.Stat(filepath.Join(report.Aside, "names/format"))), "the old state")
	assert.Slice(t, report.Unknown, onlyNames(), "unknown")
	assert.Equal(t, r.text("d/new")+r.text("d/read"), "newoursrs", "content")
	v := r.tree.Lock()
	for path, isNew := range map[string]bool{"d": false, "d/new": true, "d/read": true} {
		rec := v.Record(link(v, path))
		n := v.Inode(rec.Ino)
		assert.Equal(t, rec.Remote == nil && rec.Seq != 0, isNew, path, "is to be sent")
		assert.True(t, n.Pulled != isNew && int(n.UID) == os.Geteuid() && n.Mode&0o077 == 0, path, n)
		assert.True(t, n.IsDir() || n.State == table.Whole && n.Synced == n.ContentVersion && n.Mtime.Time().After(time.Unix(1e9, 0)), path, n)
	}
	assert.False(t, v.Inode(table.Root).Loaded, "no listing will tell what else is there")
	r.tree.Unlock()
	assert.Slice(t, assert.Of(recovery.Rescued(dir)).OK(t), []string{"recovered/before"}, "of an earlier loss")
}

// What cannot have its place is put aside under a name that says where it was: where another
// file has said the same path, where the path leads through a file, and where parts lack.
func TestScanPutsAside(t *testing.T) {
	t.Parallel()
	r := begin(t, t.TempDir(), "")
	says := [][2]string{{"one", "f"}, {"two", "f"}, {"through", "f/sub"}, {"out", "../x"}}
	inos := map[table.Ino]string{}
	for _, file := range says {
		r.puts(file[0], file[0])
		inos[r.ino(file[0])] = file[1]
	}
	r.half("half")
	half := r.ino("half")
	r.ends()
	for ino, path := range inos {
		paths, _ := filepath.Glob(filepath.Join(r.Path, "data", "*", fmt.Sprint(ino)))
		assert.Must(t, len(paths) == 1, "content of", path, paths)
		assert.OK(t, unix.Setxattr(paths[0], "user.wsmount.path", []byte(path), 0), "without extended attributes there is nothing to scan")
	}
	spoil(t, r.Path, damaged...)
	report, r := scanned(t, r.Path)
	assert.Slice(t, report.Restored, []string{"f"}, "restored")
	all := []string{r.text("f")}
	for _, path := range report.Recovered {
		text := string(assert.Of(os.ReadFile(filepath.Join(r.Path, path))).OK(t))
		if strings.HasSuffix(path, ".partial") {
			assert.Equal(t, path, fmt.Sprintf("recovered/half.%d.partial", half))
			text = text[:1] + fmt.Sprint(len(text)/part)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	assert.Slice(t, all, []string{"o2", "one", "out", "through", "two"}, "content")
}

// Files that were made just before the end do not say their paths yet. The database may: its
// log, or files of it that are not what is damaged. What the remote has is left aside.
func TestScanOfTheLastSecond(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		damaged, restored string
		unnamed           int
		lost              error
	}{
		{"names/db/MANIFEST-*", "d/e/closed d/e/open d/mid d/old moved", 2, nil},
		{"names/format", "d/e/closed d/e/open d/mid d/old moved", 2, nil},
		{"names/format", "d/e/closed d/e/open d/mid d/old moved read", 1, errors.New("no clone has them")},
		{"names/db/log/*.log", "", 7, nil},
	} {
		r := begin(t, t.TempDir(), "")
		r.theirs("read", "d/old", "d/mid")
		r.mkdir("d/e")
		r.puts("d/e/closed", "closed")
		r.puts("d/e/open", "12345")
		r.puts("removed", "removed")
		r.removes("removed")
		r.puts("x", "moved")
		r.moves("x", "moved")
		r.writes("d/old", "newest", true)
		r.writes("d/e/open", "open!", false)
		r.writes("d/mid", "middle", false)
		r.does(func(tx *tree.Tx) { assert.OK(t, revision.SetUnpushed(tx, &revision.Unpushed{Commits: 3})) })
		dir := r.killed() // without the extended attributes
		spoil(t, dir, c.damaged)
		asked := false
		report := assert.Of(Scan(t.Context(), dir, false, func(of *revision.Unpushed, _ providers.Revision, whole bool) error {
			asked = true
			assert.True(t, of.Commits == 3 && whole, "it is asked for", of, whole)
			return c.lost
		})).OK(t)
		slices.Sort(report.Restored)
		assert.Equal(t, strings.Join(report.Restored, " "), c.restored, c.damaged)
		assert.True(t, report.Unnamed == c.unnamed && len(report.Skipped)+len(report.Recovered) == 0, c.damaged, report)
		assert.Equal(t, asked, c.restored != "", c.damaged, "lost commits are asked for")
		if !asked {
			continue
		}
		r = begin(t, dir, "")
		for path, want := range map[string]string{"d/e/open": "open!", "d/e/closed": "closed", "d/old": "newest", "d/mid": "middle", "moved": "moved"} {
			assert.Equal(t, r.text(path), want, path)
		}
		assert.Equal(t, r.ino("removed"), 0, "what was removed is back")
		r.ends()
		assert.Equal(t, assert.Of(Inspect(dir, 0)).OK(t).Unpushed.Commits, 3, "commits to push")
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	r := begin(t, t.TempDir(), "")
	r.puts("f", "f")
	r.ends()
	assert.Is(t, assert.ErrOf(Scan(stopped, r.Path, true, nil)), context.Canceled)
}

// A table that is gone, or was put back from before, is not taken for a new one: the numbers
// of content that is there would be given again. What is there can be scanned.
func TestTableLost(t *testing.T) {
	t.Parallel()
	names := func(dir string) string { return filepath.Join(dir, "names") }
	for what, lose := range map[string]func(dir, old string) error{
		"gone": func(dir, _ string) error { return os.RemoveAll(names(dir)) },
		"gone, with all that says so": func(dir, _ string) error {
			_ = os.Remove(names(dir) + ".guard")
			return os.RemoveAll(names(dir))
		},
		"put back": func(dir, old string) error {
			if err := os.RemoveAll(names(dir)); err != nil {
				return err
			}
			return os.CopyFS(names(dir), os.DirFS(old))
		},
	} {
		r := begin(t, t.TempDir(), "")
		r.ends()
		old := t.TempDir()
		assert.OK(t, os.CopyFS(old, os.DirFS(names(r.Path))))
		r = begin(t, r.Path, "")
		r.puts("f", "unsent")
		dir := r.killed()
		assert.OK(t, lose(dir, old), what)
		for _, opened := range []error{assert.ErrOf(Inspect(dir, 0)), assert.ErrOf(state.Open(dir, state.Options{})), assert.ErrOf(Inspect(dir, 0))} {
			assert.Is(t, opened, table.ErrDamaged, what)
		}
		got := assert.Of(Scan(t.Context(), dir, false, nil)).OK(t, what)
		assert.Equal(t, len(got.Restored)+got.Unnamed, 1, what, got)
		assert.OK(t, assert.ErrOf(Inspect(dir, 0)), what, "after the scan")
	}
}
