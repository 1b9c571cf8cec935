package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/providers"
)

// PushReport says what a Push did.
type PushReport struct {
	providers.PushResult
	// Others had pushed before: Pull brought that here, and Commit is what was
	// committed on top of it. Both are zero where nobody had.
	Pull   PullReport
	Commit CommitReport
}

// Push sends what was committed to where others see it. What others pushed
// before comes here first (Pull), and what they left unchanged is committed on
// top. A backend without a remote has nothing to push. It fails when the remote
// cannot be reached, or takes nothing more, for Options.Patience; that it is owed
// since, and why, is in Status. What came here before it failed is in the report all
// the same.
func (v *Volume) Push(ctx context.Context, o providers.PushOptions) (r PushReport, err error) {
	err = v.owe(nil)
	if err == nil {
		err = v.pushOnce(ctx, o, &r)
	}
	if err != nil {
		v.notPushed(err)
		return r, fmt.Errorf("cache: push: %w", err)
	}
	v.Ended(chores.Push, nil)
	return r, nil
}

func (v *Volume) pushOnce(ctx context.Context, o providers.PushOptions, r *PushReport) error {
	pusher, ok := providers.As[providers.Pusher](v.p)
	if !ok {
		return nil
	}
	w := v.doing.beating(v.wait(nil, v.o.Patience))
	defer w.close()
	stop := context.AfterFunc(ctx, func() { w.end(context.Cause(ctx)) })
	defer stop()
	var got pending.Reach
	o.Sent = func(n int) { progressed(w, &got, n) }
	for try := 0; ; try++ {
		var begun pushBegun
		err := v.retry(w, func(ctx context.Context) (err error) {
			got.Again()
			begun = v.pushBegins()
			r.PushResult, err = pusher.Push(ctx, o)
			return err
		})
		switch {
		case err == nil:
			return v.pushed(w, r.PushResult, begun)
		case errors.Is(err, providers.ErrNotExist): // there is no revision yet
			return nil
		case !errors.Is(err, providers.ErrConflict) || o.Lease != "" || try >= maxTries:
			return silence(w.cause(err))
		}
		w.moved()
		if err := v.catchUp(w, r); err != nil {
			return err
		}
	}
}

// silence says of time that was over, and of nothing else, whose silence took it.
func silence(err error) error {
	late := errors.Is(err, errPatience) || errors.Is(err, context.DeadlineExceeded)
	if !late || errors.Is(err, providers.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("the remote has not answered: %w: %w", providers.ErrUnavailable, err)
}

// catchUp brings what others pushed, and puts ours on top: commits that were made
// anew are there, what became changes again is committed.
func (v *Volume) catchUp(ctx context.Context, r *PushReport) error {
	pull, err := v.Pull(ctx, PullOptions{})
	if r.Pull.add(pull); pull.TakenBack {
		r.Commit.Changes = 0 // what the try before has committed, too
	}
	if err != nil {
		return err
	}
	locked := v.lock()
	u := revision.UnpushedOf(locked.table)
	locked.unlock()
	if v.sets == nil || u != nil && u.Commits > 0 {
		return nil
	}
	commit, err := v.Commit(ctx, CommitOptions{})
	r.Commit.Add(commit)
	return err
}

// pushBegun is what a push can have sent at most: a commit that is noted while it is
// under way may have come too late for it, and so may another line of commits.
type pushBegun struct {
	at             time.Time
	commits, lines uint64
}

func (v *Volume) pushBegins() pushBegun {
	locked := v.lock()
	defer locked.unlock()
	return pushBegun{at: v.o.Now(), commits: v.pushes.commits, lines: v.pushes.lines}
}

// pushed records that the remote has what was committed when the push began. Commits
// noted since then stay unpushed, and so does all that is noted of another line. Of two
// pushes that overlap, the one that began later knows more, whichever ends first.
func (v *Volume) pushed(ctx context.Context, result providers.PushResult, begun pushBegun) error {
	if result.Pushed && result.Revision != "" {
		if err := v.setUpstream(ctx, result.Revision); err != nil {
			return err
		}
	}
	return v.update(func(v *Tx) error {
		if v.pushes.lines != begun.lines || begun.commits < v.pushes.pushed {
			return nil
		}
		v.pushes.pushed = begun.commits
		if later := v.pushes.commits - begun.commits; later > 0 {
			return v.setUnpushed(&Unpushed{Commits: int(later), Since: begun.at})
		}
		revision.SetMerging(v.table, "")
		return v.setUnpushed(nil)
	})
}

// pushes are the commits of this run, and the pushes of them. The lock of the volume guards
// them.
type pushes struct {
	commits uint64 // to push, that were noted in this run
	lines   uint64 // how often the head left the line of commits that it was on
	pushed  uint64 // commits that there were when the latest push began that has succeeded
	running bool   // in the background
	wanted  bool   // another is to follow it
}

// begin is Push in the background, after a commit. A commit that is made while one is
// under way has another follow it.
func (p *pushes) begin(v *Volume) {
	locked := v.lock()
	defer locked.unlock()
	p.wanted = true
	if p.running || locked.closed {
		return
	}
	p.running = true
	v.background(func() {
		for p.next(v) {
			_, _ = v.Push(v.ctx, providers.PushOptions{}) // Status says what became of it
		}
	})
}

// next takes up the push that is wanted, if one is.
func (p *pushes) next(v *Volume) bool {
	locked := v.lock()
	defer locked.unlock()
	p.running = p.wanted && !locked.closed
	p.wanted = false
	return p.running
}
