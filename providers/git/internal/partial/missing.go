package partial

import (
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// eachOf calls found with each entry of a tree except submodules.
func eachOf(objects *odb.Store, tree id, found func(object.Entry)) error {
	if tree.IsZero() {
		return nil
	}
	raw, err := objects.Get(tree, odb.Tree)
	if err != nil {
		return err
	}
	for len(raw) > 0 {
		var e object.Entry
		if e, raw, err = object.Next(raw); err != nil {
			return err
		}
		if !e.Mode.IsSubmodule() {
			found(e)
		}
	}
	return nil
}

// missingIn are the blobs of trees that are not local, each once; it stops when there are more
// than most; 0: all.
func missingIn(objects *odb.Store, trees []id, most int) ([]id, error) {
	seen, blobs := map[id]bool{}, []id(nil)
	for len(trees) > 0 && (most == 0 || len(blobs) <= most) {
		tree := trees[len(trees)-1]
		trees = trees[:len(trees)-1]
		if seen[tree] {
			continue
		}
		seen[tree] = true
		if err := eachOf(objects, tree, func(e object.Entry) {
			switch {
			case e.Mode.IsDir():
				trees = append(trees, e.ID)
			case !seen[e.ID] && !objects.Has(e.ID):
				seen[e.ID] = true
				blobs = append(blobs, e.ID)
			}
		}); err != nil {
			return nil, err
		}
	}
	return blobs, nil
}
