package offline

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// part is what half has of a file that is twice as long.
const part = 1 << 20

// half makes a file of which a part is local.
func (r *run) half(path string) {
	r.Helper()
	r.puts(path, "")
	r.sent(path)
	r.edits(path, func(tx *tree.Tx, ino table.Ino) {
		f := assert.Of(r.Content.Sparse(ino, path, 2*part, "")).OK(r)
		assert.OK(r, assert.ErrOf(f.WriteAt(r.Context(), []byte(strings.Repeat("o", part)), 0)))
		f.Release()
		n := tx.Edit(ino)
		n.State, n.Size = table.Partial, 2*part
	})
}

// An export has what is unsaved, as it is on the disk, and what lost its name; nothing that
// was there before is overwritten, and the working copy is as it was.
func TestExport(t *testing.T) {
	r := begin(t, t.TempDir(), "")
	r.theirs("theirs", "away", "renamed", "d/gone")
	r.half("half")
	r.edits("half", func(tx *tree.Tx, ino table.Ino) { tx.ContentChanged(ino, 2*part, table.Time{}) })
	r.puts("d/f", "content")
	r.puts("taken", "ours")
	r.puts("empty", "")
	r.Content.Remove(r.ino("empty"))
	r.makes("link", table.Inode{Mode: syscall.S_IFLNK, Target: "d/f"})
	r.makes("pipe", table.Inode{Mode: syscall.S_IFIFO})
	r.mkdir("new")
	r.removes("d/gone")
	r.moves("away", "d/away")
	r.Content.Remove(r.ino("d/away"))
	r.moves("renamed", "moved")
	r.puts("open", "12345")
	r.writes("open", "never closed", false)
	assert.OK(t, recovery.WriteOut(filepath.Join(r.Path, recovery.Dir), "nameless", strings.NewReader("nameless")))
	dir, into := r.killed(), t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(into, "taken"), []byte("there before"), 0o600))
	was := unsaved(assert.Of(Inspect(dir, 0)).OK(t), "")

	got := assert.Of(Export(t.Context(), dir, into, nil)).OK(t)
	assert.Slice(t, got.Files, []string{"half.partial", "d/f", "empty", "link", "moved", "open", "recovered/nameless"}, "exported")
	skipped := map[string]string{}
	for _, s := range got.Skipped {
		skipped[s.Path] = s.Reason
	}
	assert.Contains(t, skipped["taken"], "exists")
	assert.Contains(t, skipped["d/away"], "the content was not fetched; the remote has it under the old name")
	assert.Contains(t, skipped["pipe"], "neither a file nor a link")
	assert.Equal(t, len(skipped), 3, skipped)
	partial := strings.Repeat("o", part) + strings.Repeat("\x00", part)
	wantTree(t, into, "d/f: content", "empty: ", "half.partial: "+partial, "link: -> d/f", "moved: theirs", "open: never closed", "recovered/nameless: nameless", "taken: there before")
	assert.OK(t, assert.ErrOf(os.Stat(filepath.Join(into, "new"))), "a directory that is empty")
	assert.Equal(t, unsaved(assert.Of(Inspect(dir, 0)).OK(t), ""), was, "unsaved after the export")

	ended, end := context.WithCancel(t.Context())
	end()
	assert.Is(t, assert.ErrOf(Export(ended, dir, t.TempDir(), nil)), context.Canceled)
}

// Of what the remote is to have an export has what is asked for, if all of it is local.
func TestExportAlso(t *testing.T) {
	r := begin(t, t.TempDir(), "")
	r.theirs("a", "d/b", "d/c", "away")
	r.Content.Remove(r.ino("away"))
	r.half("half")
	r.puts("mine", "mine")
	r.makes("link", table.Inode{Mode: syscall.S_IFLNK, Target: "a"})
	r.sent("link")
	r.ends()
	into, asked := t.TempDir(), map[string]providers.Version{}
	got := assert.Of(Export(t.Context(), r.Path, into, func(path string, of providers.Version) bool {
		asked[path] = of
		return path != "a"
	})).OK(t)
	assert.Slice(t, got.Files, []string{"mine", "d/b", "d/c"}, "exported")
	wantTree(t, into, "d/b: theirs", "d/c: theirs", "mine: mine")
	assert.True(t, len(asked) == 3 && asked["d/b"].ETag == "d/b", "asked for", asked)
}
