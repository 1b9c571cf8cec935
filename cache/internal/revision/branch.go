package revision

import (
	"context"
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// BranchOptions: the zero value begins the branch anew at the tracked branch, if no work is lost
// from sight by that.
type BranchOptions struct {
	// GoOn begins the branch where the working copy is.
	GoOn bool
	// Leave begins anew even when commits are not pushed: they stay on their branch.
	Leave bool
	// Stay does nothing where otherwise the branch would go on from uncommitted or unpushed
	// changes.
	Stay bool
}

// BranchReport says what Branch did.
type BranchReport struct {
	Moved    bool               // it is another branch than before
	WentOn   string             // why it began at the working copy's place, or with Stay did not; "" with GoOn
	Revision providers.Revision // where the branch begins
	Pull     PullReport         // the changes by that
}

// Branch makes commits go to a branch from now on, "" for the tracked one, where the remote is a
// Store and a providers.Brancher; elsewhere, and on that branch already, it does nothing. A
// working copy with uncommitted changes or unpushed commits goes on from where it is: the branch
// then has these too. When the remote does not answer, the branch begins at the last known place
// of the tracked one.
func (f *Follower) Branch(w Waiting, name string, o BranchOptions) (r BranchReport, err error) {
	b, can := providers.As[providers.Brancher](f.o.Provider)
	if !can || !f.isStore {
		return r, nil
	}
	if on, err := b.Branches(w); err != nil || on.On == name {
		return r, err
	}
	head := f.o.Head.Move()
	defer head.Release()
	if err := f.o.Host.Resolve(w, head); err != nil {
		return r, err
	}
	from, err := f.store.Head(w)
	if err != nil || from == "" {
		return r, err
	}
	if _, err := f.sync(w, head); err != nil {
		return r, err
	}
	to := from
	if !o.GoOn {
		if r.WentOn = f.unfinished(o); r.WentOn == "" {
			if to, err = begin(w, b, name); err != nil {
				return r, err
			}
		} else if o.Stay {
			return r, nil
		}
	}
	r.Moved, r.Revision = true, to
	if from == to {
		return r, b.Start(w, name, from, to)
	}
	if r.Pull, err = f.goTo(w, head, starting{b, name}, from, to, Kept); err == nil {
		err = f.began(w, b, to)
	}
	return r, err
}

// unfinished says why a branch cannot begin anew.
func (f *Follower) unfinished(o BranchOptions) string {
	v := f.o.Tree.Lock()
	defer f.o.Tree.Unlock()
	switch {
	case v.DirtyCount() > 0:
		return "there are changes that are not committed"
	case UnpushedOf(v) != nil && !o.Leave:
		return "there are commits that are not pushed"
	}
	return ""
}

// askTime is how long a remote may take before a branch begins at the last known place of the
// tracked one.
const askTime = 20 * time.Second

// begin gives the revision where a branch begins, from the remote if that answers.
func begin(ctx context.Context, b providers.Brancher, name string) (providers.Revision, error) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	to, err := b.Begin(asking, name, true)
	if err != nil && ctx.Err() == nil && (errors.Is(err, providers.ErrUnavailable) || asking.Err() != nil) {
		return b.Begin(ctx, name, false)
	}
	return to, err
}

// began notes the place of the working copy after a branch was begun.
func (f *Follower) began(ctx context.Context, b providers.Brancher, at providers.Revision) error {
	all, err := b.Branches(ctx)
	if err != nil {
		return err
	}
	return f.o.Host.Update(func(tx *tree.Tx) error {
		f.o.Names.Passed(tx)
		Comes(tx, f.o.Now().UnixNano())
		SetCommitted(tx, at)
		SetMerging(tx, "")
		return f.backlog.Left(tx, all.Unpushed)
	})
}

// starting is an adopter that goes to a branch in place of another revision.
type starting struct {
	b    providers.Brancher
	name string
}

func (s starting) Adopt(ctx context.Context, from, to providers.Revision) error {
	return s.b.Start(ctx, s.name, from, to)
}
