package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/providers"
)

// BranchOptions: the zero value begins anew where the tracked branch is, if
// nothing is lost from sight by that.
type BranchOptions struct {
	// GoOn begins the branch where the working copy is.
	GoOn bool
	// Leave begins anew also when commits are not pushed: they stay on the branch
	// that they are on.
	Leave bool
	// Stay does nothing where else the branch would go on from what is not
	// committed or not pushed.
	Stay bool
}

// BranchReport says what Branch did.
type BranchReport struct {
	Moved    bool               // another branch than before
	WentOn   string             // why it began where the working copy was, or with Stay did not, unless that was asked for
	Revision providers.Revision // where the branch begins
	Pull     PullReport         // what changed by that
}

// Branch has commits go to a branch from now on, "" for the tracked one, where the backend is a
// providers.Brancher; elsewhere, and on that branch already, it does nothing. A
// working copy with changes that are not committed, or commits that are not
// pushed, goes on from where it is: the branch then has these too. When the
// remote does not answer, the branch begins where the tracked one was last.
func (v *Volume) Branch(ctx context.Context, name string, o BranchOptions) (BranchReport, error) {
	r, err := v.branch(ctx, name, o)
	v.Ended(chores.Branch, err)
	if err != nil {
		err = fmt.Errorf("cache: branch %s: %w", name, err)
	}
	return r, err
}

func (v *Volume) branch(ctx context.Context, name string, o BranchOptions) (r BranchReport, err error) {
	b, can := providers.As[providers.Brancher](v.p)
	s, whole := v.syncer()
	if !can || !whole || v.o.ReadOnly {
		return r, nil
	}
	w := v.wait(nil, v.o.Patience/2)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	if on, err := b.Branches(w); err != nil || on.On == name {
		return r, err
	}
	head := v.head.Move()
	defer head.Release()
	if err := v.resolveOpenSet(w, head); err != nil {
		return r, err
	}
	from, err := s.Head(w)
	if err != nil || from == "" {
		return r, err
	}
	if _, err := v.syncWith(w, head, s); err != nil {
		return r, err
	}
	to := from
	if !o.GoOn {
		if r.WentOn = v.unfinished(o); r.WentOn == "" {
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
	v.allowPull()
	s.Syncer = starting{s.Syncer, b, name}
	if r.Pull, err = v.adoptRevision(w, head, s, from, to); err != nil {
		return r, err
	}
	return r, v.began(w, b, to)
}

// unfinished says what keeps a branch from beginning anew.
func (v *Volume) unfinished(o BranchOptions) string {
	switch {
	case v.dirty():
		return "there are changes that are not committed"
	case v.unpushed() && !o.Leave:
		return "there are commits that are not pushed"
	}
	return ""
}

// askTime is how long a remote may take before a branch begins where the tracked
// one was last.
const askTime = 20 * time.Second

// begin asks where a branch begins, of the remote if that answers.
func begin(ctx context.Context, b providers.Brancher, name string) (providers.Revision, error) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	to, err := b.Begin(asking, name, true)
	if err != nil && ctx.Err() == nil && (errors.Is(err, providers.ErrUnavailable) || asking.Err() != nil) {
		return b.Begin(ctx, name, false)
	}
	return to, err
}

// allowPull lets what goes from the tree to another branch go without a word: it
// stays on the one that it is on.
func (v *Volume) allowPull() {
	locked := v.lock()
	defer locked.unlock()
	locked.massDelete.Allow(massdelete.Pull)
}

// began notes where the working copy is after a branch was begun.
func (v *Volume) began(ctx context.Context, b providers.Brancher, at providers.Revision) error {
	all, err := b.Branches(ctx)
	if err != nil {
		return err
	}
	return v.update(func(v *Tx) error {
		v.passed(massdelete.Pull)
		revision.Comes(v.table, v.now())
		revision.SetCommitted(v.table, at)
		revision.SetMerging(v.table, "")
		v.pushes.lines++ // what a push under way sends is of the branch before
		if err := v.setUnpushed(nil); err != nil {
			return err
		}
		for _, other := range all.Unmerged {
			if other.Name == all.On && !other.Pushed {
				return v.unpushedMore(other.Commits)
			}
		}
		return nil
	})
}

// starting is a Syncer that goes to a branch when it adopts.
type starting struct {
	providers.Syncer
	b    providers.Brancher
	name string
}

func (s starting) Adopt(ctx context.Context, from, to providers.Revision) error {
	return s.b.Start(ctx, s.name, from, to)
}
