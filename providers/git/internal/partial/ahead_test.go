package partial

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// newBlobs are those of an empty database.
func newBlobs(t *testing.T) (w *Blobs, objects *odb.Store) {
	dir := t.TempDir()
	objects = assert.Of(odb.Open(filepath.Join(dir, "objects"), filepath.Join(dir, "private"), space.Disk{})).OK(t)
	t.Cleanup(func() { assert.OK(t, objects.Close()) })
	var state atomic.Value
	state.Store(State(""))
	in := Repository{Dir: dir, Objects: objects, State: func() State { return state.Load().(State) }}
	in.SetState = func(s State) error {
		state.Store(s)
		return nil
	}
	in.Commit = func(c id) (object.Commit, error) {
		raw, err := objects.Get(c, odb.Commit)
		if err != nil {
			return object.Commit{}, err
		}
		return object.ParseCommit(raw)
	}
	return New(in), objects
}

// What is below a directory that a program looked at comes before the rest, which comes
// from the root down, each content once.
func TestAheadOrder(t *testing.T) {
	t.Parallel()
	w, objects := newBlobs(t)
	b := assert.Of(objects.NewBatch()).OK(t)
	names := map[id]string{}
	tree := func(at string, dirs map[string]id) id {
		content := []byte(at) // an id of nothing that is local
		blob := id(slices.Grow(content, 20)[:20])
		names[blob] = at + "/file"
		entries := []object.Entry{{Name: "file", Mode: object.ModeFile, ID: blob}, {Name: "same", Mode: object.ModeFile, ID: blob}}
		for name, dir := range dirs {
			entries = append(entries, object.Entry{Name: name, Mode: object.ModeDir, ID: dir})
		}
		return assert.Of(b.Add(odb.Tree, object.EncodeTree(entries))).OK(t)
	}
	d := tree("b/c/d", nil)
	c := tree("b/c", map[string]id{"d": d})
	looked := tree("b", map[string]id{"c": c})
	root := tree("", map[string]id{"a": tree("a", map[string]id{"x": tree("a/x", nil)}), "b": looked, "z": tree("z", nil)})
	assert.OK(t, b.Finish())
	assert.OK(t, w.Without())
	a := w.ahead
	a.seen, a.begun, a.far = map[id]bool{}, true, []id{root}
	var order []string
	for range 20 {
		blobs, end, err := a.more(1)
		assert.OK(t, err)
		for _, blob := range slices.Compact(blobs) {
			order = append(order, names[blob])
		}
		if len(order) == 1 {
			w.LookedAt(looked)
		}
		if end {
			break
		}
	}
	assert.Equal(t, fmt.Sprint(order), "[/file b/file b/c/file b/c/d/file a/file z/file a/x/file]")
}
