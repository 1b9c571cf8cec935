package attributes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// files are texts of files of attributes, whose ids are their places.
type files struct {
	*testing.T
	cache attributes.Cache
	texts []string
	reads int
}

func (f *files) with(above *attributes.Filters, depth, file int) *attributes.Filters {
	f.Helper()
	return assert.Of(f.cache.With(above, depth, plumbing.Hash{byte(file)}, func() ([]byte, error) {
		f.reads++
		return []byte(f.texts[file]), nil
	})).OK(f.T)
}

// The nearest file of attributes that says something of a path decides whether it goes through
// LFS, with the macros of the root, and one that says nothing of LFS changes nothing.
func TestFilters(t *testing.T) {
	f := &files{T: t, texts: []string{"[attr]big filter=lfs\n*.bin big\n", "*.bin -filter\n/kept.bin big\n", "* text\n"}}
	root := f.with(nil, 0, 0)
	dir := f.with(root, 1, 1)
	assert.True(t, f.with(dir, 2, 2) == dir, "attributes that are none of LFS")
	for path, want := range map[string]bool{"a.bin": true, "a.txt": false, "other/a.bin": true} {
		assert.Equal(t, root.IsLFS(strings.Split(path, "/")), want, path)
	}
	for path, want := range map[string]bool{"dir/a.bin": false, "dir/deep/a.bin": false, "dir/kept.bin": true, "dir/deep/kept.bin": false, "dir/a.txt": false} {
		assert.Equal(t, dir.IsLFS(strings.Split(path, "/")), want, path)
	}
	assert.False(t, f.with(nil, 1, 1).IsLFS([]string{"dir", "kept.bin"}), "a macro of another root")
	var none *attributes.Filters
	assert.False(t, none.IsLFS([]string{"a.bin"}), "without files of attributes")
	assert.True(t, none.Equal(nil) && dir.Equal(dir), "not equal to itself")
	assert.False(t, none.Equal(root) || root.Equal(none) || root.Equal(dir) || dir.Equal(f.with(root, 2, 1)), "equal to another")
}

// A file of attributes is read once for each place, and again after it could not be read.
func TestFiltersAreRemembered(t *testing.T) {
	f := &files{T: t, texts: []string{"*.bin filter=lfs\n"}}
	failure := errors.New("no such content")
	_, err := f.cache.With(nil, 0, plumbing.Hash{}, func() ([]byte, error) { return nil, failure })
	assert.Is(t, err, failure)
	root := f.with(nil, 0, 0)
	assert.True(t, f.with(nil, 0, 0) == root, "made again")
	assert.Equal(t, f.reads, 1)
	f.with(root, 1, 0)
	assert.Equal(t, f.reads, 2)
}

// Only a file is a file of attributes, and no directory, link or submodule of that name.
func TestIn(t *testing.T) {
	at := plumbing.Hash{1}
	for mode, want := range map[object.Mode]bool{object.ModeFile: true, object.ModeExec: true, object.ModeDir: false, object.ModeLink: false, object.ModeSubmodule: false} {
		tree := object.EncodeTree([]object.Entry{{Name: "a", Mode: object.ModeFile}, {Name: attributes.Name, Mode: mode, ID: at}})
		file, ok, err := attributes.In(tree)
		assert.OK(t, err)
		assert.True(t, ok == want && (file == at) == want, mode, file, ok)
	}
	_, ok, err := attributes.In(object.EncodeTree([]object.Entry{{Name: attributes.Name + "2", Mode: object.ModeFile, ID: at}}))
	assert.True(t, !ok && err == nil, "another name", err)
}
