package offline

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// unsaved are the entries of a report below a directory, in its words.
func unsaved(r Report, dir string) string {
	var lines []string
	for _, u := range r.Unsaved {
		path, is := strings.CutPrefix(u.Path, dir)
		if !is {
			continue
		}
		line := u.Change + " " + u.Kind + " " + path
		if u.Suspect {
			line += " suspect"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// A report has what the remote lacks, in the order of the changes, by the paths that have it
// or had it, and then what no close has told of. What may have lost bytes is suspect.
func TestInspect(t *testing.T) {
	rows := []struct {
		dir          string
		run          func(r *run, in string)
		want         string
		files, bytes int
		afterPower   string // where it differs
	}{
		{"nothing/", func(r *run, in string) { r.theirs(in+"f", in+"d/f") }, "", 0, 0, ""},
		{"changed/", func(r *run, in string) { r.theirs(in + "f"); r.writes(in+"f", "longer than it was", true) },
			"changed file f", 1, 18, "changed file f suspect"},
		{"replaced/", func(r *run, in string) { r.theirs(in + "f"); r.puts(in+"f", "ours") }, "changed file f", 1, 4, "changed file f suspect"},
		{"deleted/", func(r *run, in string) { r.theirs(in + "f"); r.removes(in + "f") }, "deleted file f", 0, 0, ""},
		{"renamed/", func(r *run, in string) { r.theirs(in+"f", in+"d/f"); r.moves(in+"f", in+"d/g") }, "deleted file f, renamed file d/g", 0, 6, ""},
		{"over/", func(r *run, in string) { r.theirs(in+"f", in+"g"); r.moves(in+"f", in+"g") }, "deleted file f, renamed file g", 0, 6, ""},
		{"created/", func(r *run, in string) { r.mkdir(in + "d"); r.puts(in+"d/f", "12345") },
			"created dir d, created file d/f", 1, 5, "created dir d, created file d/f suspect"},
		{"kinds/", func(r *run, in string) {
			r.makes(in+"link", table.Inode{Mode: syscall.S_IFLNK, Target: "f"})
			r.makes(in+"pipe", table.Inode{Mode: syscall.S_IFIFO})
		}, "created symlink link, created other pipe", 0, 0, ""},
		{"attributes/", func(r *run, in string) {
			r.theirs(in + "f")
			r.edits(in+"f", func(tx *tree.Tx, ino table.Ino) { tx.AttrChanged(ino) })
		}, "attributes file f", 0, 6, "attributes file f suspect"},
		{"open/", func(r *run, in string) { r.theirs(in + "f"); r.writes(in+"f", "o", false) }, "changed file f", 1, 6, "changed file f suspect"},
		{"new/", func(r *run, in string) { r.puts(in+"f", "1"); r.writes(in+"f", "2", false) }, "created file f", 1, 1, "created file f suspect"},
		{"synced/", func(r *run, in string) {
			r.puts(in+"f", "ours")
			r.edits(in+"f", func(tx *tree.Tx, ino table.Ino) { tx.Edit(ino).Synced = 1 })
		}, "created file f", 1, 4, ""},
		{"again/", func(r *run, in string) {
			r.puts(in+"f", "ours")
			r.edits(in+"f", func(tx *tree.Tx, ino table.Ino) { tx.Edit(ino).Synced = 1 })
			r.writes(in+"f", "mine", false)
		}, "created file f", 1, 4, "created file f suspect"},
		{"removed/", func(r *run, in string) { r.theirs(in + "d/e/f"); r.removes(in+"d/e/f", in+"d/e", in+"d") },
			"deleted file d/e/f, deleted file d/e, deleted file d", 0, 0, ""},
	}
	for _, boot := range []string{"", "before"} {
		r, ended := begin(t, t.TempDir(), boot), "killed"
		var files, bytes, suspect int
		for i, c := range rows {
			r.theirs(c.dir + "other")
			c.run(r, c.dir)
			if boot != "" && c.afterPower != "" {
				rows[i].want = c.afterPower
			}
			files, bytes, suspect = files+c.files, bytes+c.bytes, suspect+strings.Count(rows[i].want, "suspect")
		}
		if boot != "" {
			ended = "power lost"
		}
		dir := r.killed()
		for range 2 { // looking changes nothing
			got := assert.Of(Inspect(dir, 0)).OK(t)
			for _, c := range rows {
				assert.Equal(t, unsaved(got, c.dir), c.want, c.dir, ended)
			}
			assert.Equal(t, got.Ended, ended)
			assert.Equal(t, fmt.Sprint(got.Files, got.Bytes, got.Suspect, got.Empty()), fmt.Sprint(files, bytes, suspect, false), "counted", ended)
			assert.Equal(t, got.Total, len(got.Unsaved), ended)
		}
	}
}

// A report counts what was held back, what has no name any more, and what a loss of power
// took the name of; a limit bounds what it lists, not what it counts.
func TestInspectCounts(t *testing.T) {
	dir := t.TempDir()
	assert.Is(t, assert.ErrOf(Inspect(dir, 0)), iofs.ErrNotExist, "of nothing")
	r := begin(t, dir, "")
	for _, path := range []string{"a", "b", "c"} {
		r.puts(path, path)
	}
	r.does(func(tx *tree.Tx) {
		hold(tx, "a", table.Held{Reason: "too large"})
		hold(tx, "b", table.Held{Reason: "both", Conflict: true})
		tx.Edit(tx.Record(link(tx.View, "c")).Ino).Suspect = true
		orphan := tx.Alloc()
		tx.Put(orphan, &table.Inode{Mode: syscall.S_IFREG})
		tx.SetOrphan(orphan, true)
	})
	got := assert.Of(Inspect(dir, 0)).OK(t)
	assert.True(t, got.InUse && got.Total == 0 && !got.Empty(), "in use", got)
	r.ends()
	other := assert.Of(state.Share(dir)).OK(t)
	got = assert.Of(Inspect(dir, 2)).OK(t, "while another looks")
	assert.OK(t, other.Close())
	assert.Equal(t, unsaved(got, ""), "created file a, created file b")
	assert.True(t, got.Ended == "clean" && got.Total == 3 && got.Files == 3 && got.Held == 2 && got.Conflicts == 1 && got.Suspect == 1 && got.Orphans == 1, got)
	assert.True(t, got.Unsaved[0].Reason == "too large" && !got.Unsaved[0].Conflict && got.Unsaved[1].Conflict, got.Unsaved)

	r = begin(t, t.TempDir(), "")
	r.ends()
	got = assert.Of(Inspect(r.Path, 0)).OK(t)
	assert.True(t, got.Empty() && got.Ended == "clean", got)
	assert.OK(t, recovery.WriteOut(filepath.Join(r.Path, recovery.Dir), "d/f", strings.NewReader("f")))
	got = assert.Of(Inspect(r.Path, 0)).OK(t)
	assert.Slice(t, got.Recovered, []string{"recovered/d/f"})
	assert.False(t, got.Empty(), "nothing would be lost")
}

// What is suspect is accepted by its path, or by that of a directory above it, and is not held
// back any more.
func TestAccept(t *testing.T) {
	r := begin(t, t.TempDir(), "")
	defer r.ends()
	r.mkdir("d")
	r.mkdir("d/e")
	suspect := []string{"f", "d/f", "d/e/f"}
	for _, path := range append(suspect, "whole") {
		r.puts(path, "text")
		r.edits(path, func(tx *tree.Tx, ino table.Ino) {
			hold(tx, path, table.Held{Reason: "suspect"})
			tx.Edit(ino).Suspect = path != "whole"
		})
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{nil, "f d/f d/e/f"}, {[]string{"f"}, "f"}, {[]string{"d"}, "d/f d/e/f"}, {[]string{"d/e", "f"}, "f d/e/f"}, {[]string{"whole", "d/none"}, ""},
	} {
		undo := errors.New("for the next row")
		assert.Is(t, r.tree.Update(func(tx *tree.Tx) error {
			assert.Equal(t, strings.Join(Accept(tx, c.paths...), " "), c.want, "accepted of", c.paths)
			for _, path := range suspect {
				rec, is := tx.Record(link(tx.View, path)), slices.Contains(strings.Fields(c.want), path)
				n := tx.Inode(rec.Ino)
				assert.True(t, n.Suspect == !is && (rec.Held == nil) == is && (n.ContentVersion == 2) == is, path, n, rec)
			}
			return undo
		}, nil), undo)
	}
}
