package offline

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// run is a working copy that is mounted, for all that its directory says.
type run struct {
	*testing.T
	*state.Dir
	tree *tree.Tree
}

// begin has one run in a directory, the first or another, on some boot of the machine ("": this).
func begin(t *testing.T, dir, boot string) *run {
	t.Helper()
	d := assert.Of(state.Open(dir, state.Options{Table: table.Options{BootID: boot}, Content: content.Options{Ballast: -1, Floor: -1}})).OK(t)
	r := &run{t, d, treeOf(d.Table)}
	if r.Table.Session().First {
		r.does(func(tx *tree.Tx) { tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR | 0o755, Loaded: true}) })
	}
	return r
}

// ends ends it cleanly.
func (r *run) ends() {
	r.Helper()
	assert.OK(r, r.Close())
}

// killed ends it, and gives a directory as a kill would have left it: a copy that was made
// while nothing changed.
func (r *run) killed() (dir string) {
	r.Helper()
	defer r.ends()
	assert.OK(r, r.tree.Sync())
	dir = r.TempDir()
	assert.Eventually(r, "a copy of what keeps still", func() bool {
		was, err := contents(r.Path)
		if err == nil {
			err = errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(r.Path)))
		}
		is, _ := contents(r.Path)
		return err == nil && was == is
	})
	return dir
}

// contents are the files of a directory, and what changes when they do.
func contents(dir string) (all string, err error) {
	err = filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all += fmt.Sprintln(path, info.Size(), info.ModTime())
		}
		return err
	})
	return all, err
}

func (r *run) does(f func(*tree.Tx)) {
	r.Helper()
	assert.OK(r, r.tree.Update(func(tx *tree.Tx) error { f(tx); return nil }, nil))
}

// link is the name of a path, whose directory is there.
func link(v *tree.View, path string) table.Link {
	l := table.Link{Dir: table.Root}
	for name := range strings.SplitSeq(path, "/") {
		if l.Name != "" {
			l.Dir = v.Record(l).Ino
		}
		l.Name = name
	}
	return l
}

// ino has a path.
func (r *run) ino(path string) table.Ino {
	v := r.tree.Lock()
	defer r.tree.Unlock()
	return v.Record(link(v, path)).Ino
}

// makes gives a path a new inode.
func (r *run) makes(path string, n table.Inode) {
	r.Helper()
	n.ContentVersion, n.AttrGen, n.Loaded = 1, 1, n.IsDir()
	r.does(func(tx *tree.Tx) {
		ino := tx.Alloc()
		tx.Put(ino, &n)
		tx.SetLocal(link(tx.View, path), ino, false, false)
	})
}

func (r *run) mkdir(path string) {
	r.Helper()
	r.makes(path, table.Inode{Mode: syscall.S_IFDIR | 0o755})
}

// puts makes a file.
func (r *run) puts(path, text string) {
	r.Helper()
	made := assert.Of(files.Make(r.Context(), r.tree, r.Content, path, strings.NewReader(text))).OK(r)
	r.does(func(tx *tree.Tx) {
		tx.Put(made.Ino, &table.Inode{Mode: syscall.S_IFREG | 0o644, ContentVersion: 1, AttrGen: 1, State: table.Whole, Size: made.Size, Blocks: made.Blocks})
		tx.SetLocal(link(tx.View, path), made.Ino, false, false)
	})
}

// theirs makes files that the remote has, and what is above them.
func (r *run) theirs(paths ...string) {
	r.Helper()
	for _, path := range paths {
		for i, c := range path {
			if above := path[:i]; c == '/' && r.ino(above) == 0 {
				r.mkdir(above)
				r.sent(above)
			}
		}
		r.puts(path, "theirs")
		r.sent(path)
	}
}

// sent has the remote have what a path has.
func (r *run) sent(path string) {
	r.Helper()
	r.does(func(tx *tree.Tx) {
		l := link(tx.View, path)
		ino := tx.Record(l).Ino
		n := tx.Inode(ino)
		base := table.Remote{Ino: ino, Kind: providers.KindDir, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen}
		if n.IsRegular() {
			base.Kind, base.Version = providers.KindFile, providers.Version{ETag: path, Size: n.Size}
			tx.Edit(ino).Origin = table.Origin{Version: base.Version, ContentVersion: n.ContentVersion}
		}
		tx.SetRemote(l, &base)
	})
}

// writes changes content, whose last descriptor is closed then or not.
func (r *run) writes(path, text string, closed bool) {
	r.Helper()
	ino := r.ino(path)
	r.does(func(tx *tree.Tx) { files.SetDirtyIntent(tx, ino, tx.Edit(ino), true) })
	c := assert.Of(r.Content.Open(ino)).OK(r)
	defer c.Release()
	assert.OK(r, assert.ErrOf(c.WriteAt(r.Context(), []byte(text), 0)))
	if closed {
		r.does(func(tx *tree.Tx) {
			files.SetDirtyIntent(tx, ino, tx.Edit(ino), false)
			tx.ContentChanged(ino, c.Size(), table.Time{})
		})
	}
}

// removes takes paths away.
func (r *run) removes(paths ...string) {
	r.Helper()
	for _, path := range paths {
		r.does(func(tx *tree.Tx) { tx.SetLocal(link(tx.View, path), 0, false, false) })
	}
}

func (r *run) moves(from, to string) {
	r.Helper()
	ino := r.ino(from)
	r.does(func(tx *tree.Tx) {
		tx.SetLocal(link(tx.View, from), 0, false, false)
		tx.SetLocal(link(tx.View, to), ino, false, false)
	})
}

// edits changes the inode of a path.
func (r *run) edits(path string, f func(tx *tree.Tx, ino table.Ino)) {
	r.Helper()
	ino := r.ino(path)
	r.does(func(tx *tree.Tx) { f(tx, ino) })
}

// hold holds a path back.
func hold(tx *tree.Tx, path string, h table.Held) {
	l := link(tx.View, path)
	rec := tx.Record(l)
	rec.Held = &h
	tx.SetName(l, rec)
}

// wantTree has the files below a directory, as "path: content".
func wantTree(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	assert.OK(t, filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		text, err := os.ReadFile(path)
		if d.Type()&iofs.ModeSymlink != 0 {
			var to string
			to, err = os.Readlink(path)
			text = []byte("-> " + to)
		}
		got = append(got, rel+": "+string(text))
		return err
	}))
	slices.Sort(got)
	assert.Slice(t, got, want, "the files")
}
