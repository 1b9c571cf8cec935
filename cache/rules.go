package cache

import (
	"context"
	"errors"
	"io"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

func newBorder(v *Volume) *rules.Border {
	b := &rules.Border{Symlinks: v.caps.Symlinks, Ignores: rules.New(v.o.IgnoreFile), Wake: v.pending.Kick}
	if v.o.Exclude != nil {
		b.Exclude = v.o.Exclude
	}
	return b
}

func newLearner(v *Volume) *rules.Learner {
	return rules.NewLearner(rules.LearnerOptions{Tree: v.tree, Border: v.border, Volume: learning{v}, Go: v.work.Go, Log: v.o.Log})
}

// followRules makes names stay local, or stay no longer, according to exclusion rules that changed
// since the run before (D12). It asks the remote nothing, and precedes all sending: names that are
// excluded now must not go, even if they were waiting to be sent. Entries that were sent before
// are hidden by the pull that sees them at the remote. It reports whether a look at ignore files
// has to decide about more names.
func (v *Volume) followRules(ctx context.Context) (look bool, err error) {
	locked := v.lock()
	same := v.o.ReadOnly || v.border.IsFollowed(locked.View)
	locked.unlock()
	if same {
		return false, nil
	}
	m := v.merger.New(ctx, v.p)
	err = m.Run(func(tx *merge.Tx) error {
		for _, l := range v.border.Leaving(tx.View) {
			m.Hide(tx, l)
		}
		look = v.border.Follow(tx.Tx.Tx)
		return nil
	})
	return look, err
}

// learning adapts a volume for its learner of rules.
type learning struct{ v *Volume }

// Update implements rules.Volume.
func (e learning) Update(own bool, do func(*tree.Tx) error) error {
	return e.v.update(func(v *Tx) error {
		err := do(v.Tx)
		v.local.Own = own && err == nil
		return err
	})
}

// Snapshot implements rules.Volume.
func (e learning) Snapshot(do func(*tree.View, *rules.Border)) {
	locked := e.v.lock()
	at, border := locked.Snapshot(), e.v.border.Snapshot()
	locked.unlock()
	defer e.v.giveBack(at)
	do(at.View, border)
}

// Patiently implements rules.Volume.
func (e learning) Patiently(ctx context.Context, do func(rules.Work) error) error {
	w := e.v.waits.For(nil, e.v.o.Patience)
	defer w.Close()
	defer context.AfterFunc(ctx, w.Close)()
	return do(learningWork{e.v, w})
}

// learningWork implements rules.Work: the requests of a learner to the remote.
type learningWork struct {
	v *Volume
	w *waiting.Context
}

// Moved implements rules.Work.
func (e learningWork) Moved() { e.w.Moved() }

// List implements rules.Work.
func (e learningWork) List(dir table.Ino) error { return unlessStale(e.v.listings.List(e.w, dir)) }

// unlessStale is err, or nil for an error that says that something was removed.
func unlessStale(err error) error {
	if errors.Is(err, fs.ErrStale) {
		return nil
	}
	return err
}

// Read implements rules.Work.
func (e learningWork) Read(ino table.Ino, most int64) (content []byte, there bool, err error) {
	content, err = e.read(ino, most)
	if errors.Is(err, fs.ErrStale) || e.v.gone(ino) {
		return nil, false, nil
	}
	return content, true, err
}

func (e learningWork) read(ino table.Ino, most int64) ([]byte, error) {
	v := e.v
	oi, err := v.openContent(ino, files.ForUs)
	if err != nil {
		return nil, err
	}
	defer v.opener.Release(oi)
	if oi.Content().Size() > most {
		v.o.Log.Warn("an ignore file is too large, and says nothing", "bytes", oi.Content().Size(), "most", most)
		return nil, nil
	}
	if err := v.hydrator.Follow(e.w, func() error { return oi.Content().FetchAll(e.w) }); err != nil {
		return nil, err
	}
	snap, err := oi.Content().Snapshot(e.w)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return io.ReadAll(snap.Reader())
}

// Fetch implements rules.Work.
func (e learningWork) Fetch(ino table.Ino, kind providers.Kind) error {
	return unlessStale(e.v.hydrator.Follow(e.w, func() error { return e.v.bringContent(e.w, ino, kind) }))
}
