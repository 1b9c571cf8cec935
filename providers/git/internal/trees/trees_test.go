package trees_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/space"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// A stage is a database, with a tree that has dir/deep/file, dir/other, a link, a submodule and an
// entry that is not shown.
type stage struct {
	*testing.T
	edit trees.Editor
	tree odb.ID
}

func newStage(t *testing.T) *stage {
	root := t.TempDir()
	objects := assert.Of(odb.Open(filepath.Join(root, "objects"), filepath.Join(root, "private"), space.Disk{})).OK(t)
	t.Cleanup(func() { _ = objects.Close() })
	s := &stage{T: t, edit: trees.Editor{Objects: objects}}
	b := assert.Of(objects.NewBatch()).OK(t)
	defer b.Abandon()
	file := assert.Of(b.Add(odb.Blob, []byte("content"))).OK(t)
	made := trees.Dir(odb.ID{})
	for path, mode := range map[string]object.Mode{
		"dir/deep/file": object.ModeFile, "dir/other": object.ModeExec, "link": object.ModeLink, "sub": object.ModeSubmodule,
	} {
		made = assert.Of(s.edit.Put(made, strings.Split(path, "/"), &trees.Node{Mode: mode, ID: file})).OK(t)
	}
	made.Set(".git", &trees.Node{Mode: object.ModeFile, ID: file})
	s.tree = assert.Of(made.Save(b)).OK(t)
	assert.OK(t, b.Finish())
	return s
}

// paths are those of all entries below a directory but directories, in order.
func (s *stage) paths(n *trees.Node) string {
	s.Helper()
	b := assert.Of(s.edit.Objects.NewBatch()).OK(s.T)
	tree := assert.Of(n.Save(b)).OK(s.T)
	assert.OK(s.T, b.Finish())
	var all []string
	var walk func(tree odb.ID, at string)
	walk = func(tree odb.ID, at string) {
		entries := assert.Of(object.Entries(assert.Of(s.edit.Objects.Get(tree, odb.Tree)).OK(s.T))).OK(s.T)
		for _, e := range entries {
			if e.Mode.IsDir() {
				walk(e.ID, at+e.Name+"/")
			} else {
				all = append(all, at+e.Name)
			}
		}
	}
	walk(tree, "")
	return strings.Join(all, " ")
}

const begin = ".git dir/deep/file dir/other link sub"

// An entry is put with its missing parents, and a directory goes with its last entry. The tree
// that was changed stays as it was, and entries that are not shown stay in the changed one.
func TestChanges(t *testing.T) {
	s := newStage(t)
	was := trees.Dir(s.tree)
	is := assert.Of(s.edit.Put(was, []string{"new", "deep", "file"}, &trees.Node{Mode: object.ModeFile, ID: s.tree})).OK(t)
	is = assert.Of(s.edit.Without(is, []string{"dir", "deep", "file"})).OK(t)
	is = assert.Of(s.edit.Without(is, []string{"link"})).OK(t)
	is = assert.Of(s.edit.Without(is, []string{"dir", "no", "such"})).OK(t)
	is = assert.Of(s.edit.Without(is, []string{".git"})).OK(t)
	assert.Equal(t, s.paths(is), ".git dir/other new/deep/file sub")
	is = assert.Of(s.edit.Without(is, []string{"dir", "other"})).OK(t)
	assert.Equal(t, s.paths(is), ".git new/deep/file sub")
	assert.Equal(t, s.paths(was), begin)
}

// Nothing is put into an entry that has no entries of its own, and the tree stays as it was.
func TestNoDirectory(t *testing.T) {
	s := newStage(t)
	root := trees.Dir(s.tree)
	for in, want := range map[string]error{"link": providers.ErrNotDir, "dir/other": providers.ErrNotDir, "sub": providers.ErrPermission} {
		_, err := s.edit.Put(root, append(strings.Split(in, "/"), "file"), &trees.Node{Mode: object.ModeFile, ID: s.tree})
		assert.Is(t, err, want, in)
	}
	assert.Equal(t, s.paths(root), begin)
}

// A tree that was changed has the id that it had before once it is the same again, and is equal to
// no other until it is saved. The size of a file is known when a caller asks for the file.
func TestEqual(t *testing.T) {
	s := newStage(t)
	was := trees.Dir(s.tree)
	file := &trees.Node{Mode: object.ModeFile, ID: s.tree}
	is := assert.Of(s.edit.Put(was, []string{"more"}, file)).OK(t)
	is = assert.Of(s.edit.Without(is, []string{"more"})).OK(t)
	assert.False(t, trees.Equal(was, is) || trees.Equal(trees.Dir(odb.ID{}), is), "equal to a tree that was changed")
	assert.Equal(t, s.paths(is), begin)
	assert.True(t, trees.Equal(was, is), "the same tree is another")
	assert.False(t, trees.Equal(was, nil) || trees.Equal(nil, is), "equal to no entry")

	dir := assert.Of(s.edit.Child(was, "dir")).OK(t)
	other := assert.Of(s.edit.Child(dir, "other")).OK(t)
	assert.Equal(t, other.Size, int64(len("content")))
	hidden := assert.Of(s.edit.Child(was, ".git")).OK(t)
	assert.True(t, hidden == nil, "an entry that is not shown")
}

// A directory that has lost all entries says so, and one that was not changed does not.
func TestEmptied(t *testing.T) {
	s := newStage(t)
	dir := assert.Of(s.edit.Child(trees.Dir(s.tree), "dir")).OK(t)
	less := assert.Of(s.edit.Without(dir, []string{"other"})).OK(t)
	assert.False(t, less.IsEmptied() || dir.IsEmptied() || trees.Dir(odb.ID{}).IsEmptied())
	less = assert.Of(s.edit.Without(less, []string{"deep", "file"})).OK(t)
	assert.True(t, less.IsEmptied())
}
