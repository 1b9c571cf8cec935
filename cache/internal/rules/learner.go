package rules

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/wsmount/wsmount/cache/internal/ignore"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// maxRules is how large an ignore file may be, in bytes. Of a larger one no rule counts.
const maxRules = 1 << 20

// maxTries bounds the tries in a row of a step that other changes may overtake.
const maxTries = 4

// A Learner reads ignore files, and looks again at names that stay local for earlier rules.
type Learner struct {
	o        LearnerOptions
	learning bool // in the background; the lock of the tree guards it
}

// LearnerOptions are the parts that a Learner works with.
type LearnerOptions struct {
	Tree   *tree.Tree
	Border *Border
	Volume Volume
	Go     func(f func()) // runs f in the background
	Log    *slog.Logger
}

// Volume is a working copy as a Learner needs it.
type Volume interface {
	// Update runs do as one change of the tree. Names that it makes dirty with own set are due
	// with the commit under way.
	Update(own bool, do func(*tree.Tx) error) error
	// Snapshot runs do with the tree and the border of this moment, without the lock.
	Snapshot(do func(v *tree.View, b *Border))
	// Patiently runs do until it is done, there was no progress for too long, or ctx ends.
	Patiently(ctx context.Context, do func(Work) error) error
}

// Work asks the remote for a Learner. A name that was removed meanwhile is no error.
type Work interface {
	Moved()                   // there is progress
	List(dir table.Ino) error // makes the names of a directory known
	// Read returns the content of an ignore file, as it is at the moment or newer, but no content
	// of one larger than most; false: it was removed.
	Read(ino table.Ino, most int64) (content []byte, there bool, err error)
	Fetch(ino table.Ino, kind providers.Kind) error // makes the content local
}

// NewLearner makes one that has learned no rules.
func NewLearner(o LearnerOptions) *Learner { return &Learner{o: o} }

// ForCommit makes all rules known that count for names that may go with a commit, and looks again
// at names that stay local for earlier rules.
func (e *Learner) ForCommit(ctx context.Context) error {
	if !e.o.Border.Ignoring {
		return nil
	}
	return e.o.Volume.Patiently(ctx, func(w Work) error {
		for range maxTries { // they may change meanwhile
			var dirs []table.Ino
			e.o.Volume.Snapshot(func(v *tree.View, b *Border) { dirs = b.Ignores.Unlearned(v) })
			if len(dirs) == 0 {
				break
			}
			if err := e.learnAll(w, dirs); err != nil {
				return err
			}
		}
		return e.lookAgain(w)
	})
}

// Look is ForCommit before there is one: names are excluded no longer.
func (e *Learner) Look(ctx context.Context) {
	if err := e.ForCommit(ctx); err != nil {
		e.o.Log.Debug("names that are excluded no longer are looked at with the next commit", "err", err)
	}
}

// Ahead learns rules that were changed locally, or could have been used, so that names made from
// now on stay local at once. Rules that it cannot learn are learned by the next commit.
func (e *Learner) Ahead(ctx context.Context, v *tree.View) {
	if !e.o.Border.Ignoring || e.learning {
		return
	}
	dirs := e.o.Border.Ignores.Wanted(v)
	if len(dirs) == 0 {
		return
	}
	e.learning = true
	e.o.Go(func() {
		if err := e.o.Volume.Patiently(ctx, func(w Work) error { return e.learnAll(w, dirs) }); err != nil {
			e.o.Log.Debug("ignore files are read later", "err", err)
		}
		e.o.Tree.Lock()
		e.learning = false
		e.o.Tree.Unlock()
		e.o.Border.Wake()
	})
}

func (e *Learner) learnAll(w Work, dirs []table.Ino) error {
	for _, dir := range dirs {
		if err := e.learn(w, dir); err != nil {
			return fmt.Errorf("%s: %w", e.o.Border.Ignores.file, err)
		}
		w.Moved()
	}
	return nil
}

// learn reads the rules of a directory, if they were not learned or have changed.
func (e *Learner) learn(w Work, dir table.Ino) error {
	r, known := e.fileOf(dir)
	if !known {
		if err := w.List(dir); err != nil {
			return err
		}
		r, _ = e.fileOf(dir)
	}
	if r.Ino != 0 {
		content, there, err := w.Read(r.Ino, maxRules)
		if err != nil || !there {
			return err
		}
		r.Rules = ignore.Parse(content)
	}
	return e.o.Volume.Update(false, func(tx *tree.Tx) error {
		e.o.Border.Ignores.Learn(tx, dir, r)
		return nil
	})
}

// fileOf is the ignore file of a directory at the moment, see Ignores.FileOf.
func (e *Learner) fileOf(dir table.Ino) (r Rules, known bool) {
	v := e.o.Tree.Lock()
	defer e.o.Tree.Unlock()
	r.Ino, r.Version, known = e.o.Border.Ignores.FileOf(v, dir)
	return r, known
}

// lookAgain looks at all names in directories whose rules have changed. Names that cannot be
// decided yet are looked at before the next commit.
func (e *Learner) lookAgain(w Work) error {
	dirs := ToLookBelow(e.o.Tree.Lock())
	e.o.Tree.Unlock()
	if len(dirs) == 0 {
		return nil
	}
	var carriers Carriers
	e.o.Volume.Snapshot(func(v *tree.View, _ *Border) { carriers, _ = CarriersOf(v) })
	for _, dir := range dirs {
		sure := false
		for range maxTries {
			unlearned, err := e.lookBelow(dir, carriers)
			if err != nil {
				return err
			}
			if sure = len(unlearned) == 0; sure {
				break
			}
			if err := e.learnAll(w, unlearned); err != nil {
				return err
			}
		}
		if !sure {
			continue
		}
		if err := e.o.Volume.Update(false, func(tx *tree.Tx) error {
			Looked(tx, dir)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// lookBelow looks at all names below a directory, one directory at a time: the lock is not held
// for a million of them. It returns the directories whose rules would have to be known.
func (e *Learner) lookBelow(top table.Ino, c Carriers) (unlearned []table.Ino, err error) {
	asked := map[table.Ino]struct{}{}
	for dirs := []table.Ino{top}; len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		err := e.o.Volume.Update(true, func(tx *tree.Tx) error { // due with the commit
			tx.Names(dir, "", func(name string, rec table.Name) bool {
				n, l := tx.Inode(rec.Ino), table.Link{Dir: dir, Name: name}
				if rec.Ino == 0 || n == nil {
					return true
				}
				if !e.o.Border.Sort(tx, l, c) {
					unlearned = append(unlearned, e.o.Border.Ignores.UnlearnedAbove(tx, l, asked)...)
				}
				if n.IsDir() {
					dirs = append(dirs, rec.Ino)
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return unlearned, nil
}

// Bring fetches content that is to stay local and is not local yet.
func (e *Learner) Bring(ctx context.Context, names []table.Link) error {
	return e.o.Volume.Patiently(ctx, func(w Work) error {
		for _, l := range names {
			v := e.o.Tree.Lock()
			ino, kind := v.Record(l).Ino, providers.KindFile
			n := v.Inode(ino)
			missing := n != nil && !n.IsComplete()
			if missing && n.IsSymlink() {
				kind = providers.KindSymlink
			}
			e.o.Tree.Unlock()
			if !missing {
				continue
			}
			if err := w.Fetch(ino, kind); err != nil {
				return err
			}
		}
		return nil
	})
}
