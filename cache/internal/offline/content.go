package offline

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/pins"
)

// ContentUsage is what a working copy takes of its disk, in bytes. What is open is not counted.
type ContentUsage struct {
	Clean   int64 `json:"cleanBytes"`   // copies of what the backend has
	Unsaved int64 `json:"unsavedBytes"` // content that it lacks, or that stays here
	History int64 `json:"historyBytes"` // content of versions that were
}

// UsageOf is what content takes.
func UsageOf(s *content.Store) ContentUsage {
	u := s.Usage()
	return ContentUsage{Clean: u.Clean, Unsaved: u.Dirty, History: u.Kept}
}

// ContentOf is what the content of a working copy takes, after all clean content was given up
// if clear says so. io/fs.ErrNotExist when there is no working copy.
//
// After an unclean end the table is left as it is: what that end asks for belongs into
// its next commit. So it is where its disk has no room to open it but to be read, or for the
// records. Then the content is gone as after an eviction whose record a loss of power took.
func ContentOf(stateDir string, clear bool) (u ContentUsage, freed int64, err error) {
	if !clear {
		return giveUp(stateDir, table.Options{ReadOnly: true}, 0)
	}
	u, freed, err = giveUp(stateDir, table.Options{}, files.Everything)
	if content.IsFull(err) {
		before := freed
		u, freed, err = giveUp(stateDir, table.Options{ReadOnly: true}, files.Everything)
		freed += before
	}
	return u, freed, err
}

// MakeRoomIn gives up n bytes of clean content, or all if there is less, for others who found
// the disk full. It writes nothing. The errors are those of [ContentOf].
func MakeRoomIn(stateDir string, n int64) (freed int64, err error) {
	_, freed, err = giveUp(stateDir, table.Options{ReadOnly: true}, n)
	return freed, err
}

// giveUp is ContentOf with so many bytes given up.
func giveUp(stateDir string, to table.Options, n int64) (u ContentUsage, freed int64, err error) {
	w, err := open(stateDir, true, to)
	if err != nil {
		return u, 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	var full error
	e := files.Eviction{Tree: w.tree, Store: w.Content, Open: files.NewOpenSet(), Update: func(do func(*tree.Tx) error) error {
		err := w.tree.Update(do, nil)
		if content.IsFull(err) {
			full = err
		}
		return err
	}}
	if e.Pins, err = pins.Load(stateDir); err != nil {
		return u, 0, err
	}
	if err = e.WeighAll(context.Background()); err != nil {
		return u, 0, err
	}
	if n > 0 {
		may := e.MayEvict
		if to.ReadOnly || !w.Table.Session().Clean {
			may = e.IsReplaceable
		}
		freed = w.Content.EvictFor(n, may)
	}
	return UsageOf(w.Content), freed, w.tree.View(func(*tree.View) error { return full })
}
