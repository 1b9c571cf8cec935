package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// workingCopy is one that no mount has open.
type workingCopy struct {
	*state.Dir
	tree *tree.Tree
}

// open opens the names of a working copy that is there, and its content too if with says so.
// fs.ErrNotExist when there is none. Names that are only read may be read by others at once.
func open(dir string, with bool, to table.Options) (*workingCopy, error) {
	if err := state.HasTable(dir); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	take := state.Lock
	if to.ReadOnly && !with {
		take = state.Share
	}
	d, err := take(dir)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	err = d.OpenTable(to)
	if to.ReadOnly && errors.Is(err, fs.ErrNotExist) { // none was made to its end: what there is may be damaged
		if err := d.Close(); err != nil {
			return nil, fmt.Errorf("cache: %w", err)
		}
		to.ReadOnly = false
		return open(dir, with, to)
	}
	if err == nil && with {
		d.Content, err = content.Open(dir, content.Options{Ballast: -1, Floor: -1})
	}
	if err != nil {
		return nil, fmt.Errorf("cache: %w", errors.Join(err, d.Close()))
	}
	return &workingCopy{d, treeOf(d.Table)}, nil
}

// treeOf is the tree in a table, of a remote of which nothing is known: no difference is
// taken for none.
func treeOf(t *table.Table) *tree.Tree {
	return tree.New(t, tree.Options{Attributes: true, Log: slog.New(slog.DiscardHandler)})
}
