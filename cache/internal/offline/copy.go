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

// workingCopy is a working copy that no mount has open.
type workingCopy struct {
	*state.Dir
	tree *tree.Tree
}

// open opens the names of an existing working copy, and its content too if with is set.
// fs.ErrNotExist when there is none. Names may be read by several processes at once.
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
	if to.ReadOnly && errors.Is(err, fs.ErrNotExist) { // half made: maybe damaged
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

// treeOf is the tree in a table, whose remote is unknown: it is given every ability, so that no
// difference is ignored.
func treeOf(t *table.Table) *tree.Tree {
	return tree.New(t, tree.Options{Attributes: true, Log: slog.New(slog.DiscardHandler)})
}
