package offline

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/providers"
)

// ContentUsage is the disk space of a working copy, in bytes. Open content is not counted.
type ContentUsage struct {
	Clean   int64 `json:"cleanBytes"`   // copies of content that the remote has
	Unsaved int64 `json:"unsavedBytes"` // content that it lacks, or that stays local
	History int64 `json:"historyBytes"` // content of earlier versions
	// Lost is why commits that are not pushed cannot be read: then all content is unsaved.
	Lost string `json:"lost,omitempty"`
}

// UsageOf is the disk usage of a store.
func UsageOf(s *content.Store, e *files.Eviction) ContentUsage {
	u := s.Usage()
	of := ContentUsage{Clean: u.Clean, Unsaved: u.Dirty, History: u.Kept}
	if why := e.Why(); why != nil {
		of.Lost = why.Error()
	}
	return of
}

// Lost is why commits that are noted as not pushed cannot be read where the provider keeps
// them, of a working copy whose names are those of the revision standsOn ("": unknown). whole:
// also check that each byte can be read, which takes as long as reading it.
type Lost func(noted *revision.Unpushed, standsOn providers.Revision, whole bool) error

// Question is the call of Lost for a working copy; nil: nothing is to be asked.
func (l Lost) Question(v *tree.View) (ask func(whole bool) error) {
	noted := revision.UnpushedOf(v)
	if l == nil || noted == nil {
		return nil
	}
	standsOn := revision.Last(v)
	return func(whole bool) error { return l(noted, standsOn, whole) }
}

// ContentOf is the disk usage of a working copy's content, after evicting all clean content if
// clear is set. Where commits are lost, all content is unsaved: nothing else has theirs.
// io/fs.ErrNotExist when there is no working copy.
//
// After an unclean end the table stays unchanged: the recovery from that end belongs into its
// next commit. The same holds where the disk has no room to open the table for writing, or for
// the records. Then the content is gone as after an eviction whose record a loss of power took.
func ContentOf(stateDir string, clear bool, lost Lost) (u ContentUsage, freed int64, err error) {
	if !clear {
		return giveUp(stateDir, table.Options{ReadOnly: true}, 0, lost)
	}
	u, freed, err = giveUp(stateDir, table.Options{}, files.Everything, lost)
	if content.IsFull(err) {
		before := freed
		u, freed, err = giveUp(stateDir, table.Options{ReadOnly: true}, files.Everything, lost)
		freed += before
	}
	return u, freed, err
}

// MakeRoomIn evicts n bytes of clean content, or all if there is less, for other processes that
// found the disk full. It writes nothing. The errors are those of [ContentOf].
func MakeRoomIn(stateDir string, n int64, lost Lost) (freed int64, err error) {
	_, freed, err = giveUp(stateDir, table.Options{ReadOnly: true}, n, lost)
	return freed, err
}

// giveUp is ContentOf with n bytes evicted.
func giveUp(stateDir string, to table.Options, n int64, lost Lost) (u ContentUsage, freed int64, err error) {
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
	e.Lost = lost.Question
	e.Recheck(true)
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
	return UsageOf(w.Content, &e), freed, w.tree.View(func(*tree.View) error { return full })
}

// lost asks whether commits that are not pushed are lost, if any are noted and why can answer.
func (w *workingCopy) lost(why Lost) error {
	v := w.tree.Lock()
	ask := why.Question(v)
	w.tree.Unlock()
	if ask == nil {
		return nil
	}
	return ask(true)
}
