package revision

import (
	"context"
	"errors"
	"log/slog"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// PushReport says what a Push did.
type PushReport struct {
	providers.PushResult
	// If others had pushed before: Pull applied their revisions locally, and Commit committed the
	// local changes on top. Otherwise both are zero.
	Pull   PullReport
	Commit pending.Report
}

// Copy is the working copy that is pushed.
type Copy interface {
	// Pull fetches and applies the revisions that others have pushed.
	Pull(ctx context.Context) (PullReport, error)
	// Recommit commits the changes that a pull took back. In a working copy that commits no sets
	// it does nothing.
	Recommit(ctx context.Context) (pending.Report, error)
	// Go runs f in the background. IsClosed reports whether nothing new is to begin.
	Go(f func())
	IsClosed(*tree.View) bool
}

// PusherOptions are the dependencies of a Pusher.
type PusherOptions struct {
	Follower *Follower
	Copy     Copy
	Context  context.Context // ends with the working copy
	Log      *slog.Logger
}

// Pusher sends commits to the remote that others see. The lock of the tree guards its state.
type Pusher struct {
	f       *Follower
	o       PusherOptions
	remote  providers.Pusher // nil: there is none
	running bool             // in the background
	wanted  bool             // another push is to follow it
}

// NewPusher makes a Pusher that has sent nothing.
func NewPusher(o PusherOptions) *Pusher {
	p := &Pusher{f: o.Follower, o: o}
	p.remote, _ = providers.As[providers.Pusher](p.f.o.Provider)
	return p
}

// Push sends the commits to the remote that others see. Revisions that others pushed before are
// pulled first, and local changes that do not conflict with them are committed on top. A remote
// that is no Pusher has nothing to push. After a failure the table records since when a push is
// owed, and why; the report has the steps done before it all the same.
func (p *Pusher) Push(ctx context.Context, o providers.PushOptions) (r PushReport, err error) {
	err = p.owe(nil)
	if err == nil && p.remote != nil {
		err = p.f.o.Host.Patiently(ctx, func(w Waiting) error { return p.push(w, o, &r) })
	}
	p.f.o.Chores.Ended(chores.Push, err)
	if err != nil && !p.f.o.Chores.IsBrokenOff(err) {
		if err := p.owe(err); err != nil {
			p.o.Log.Error("why a push failed cannot be kept", "err", err)
		}
	}
	return r, err
}

func (p *Pusher) owe(cause error) error {
	return p.f.o.Host.Update(func(tx *tree.Tx) error { return p.f.backlog.Owe(tx, cause) })
}

func (p *Pusher) push(w Waiting, o providers.PushOptions, r *PushReport) error {
	var got pending.Reach
	o.Sent = func(n int) {
		if got.By(n) {
			w.Moved()
		}
	}
	for try := 0; ; try++ {
		var begun PushBegun
		var damaged error // of the commits to be sent: no time mends that
		err := p.f.o.Host.Retry(w, func(ctx context.Context) (err error) {
			got.Again()
			begun = p.f.backlog.Begin(p.f.o.Tree.Lock())
			p.f.o.Tree.Unlock()
			if r.PushResult, err = p.remote.Push(ctx, o); errors.Is(err, providers.ErrCorrupt) {
				damaged, err = err, nil
			}
			return err
		})
		switch {
		case damaged != nil:
			return damaged
		case err == nil:
			return p.pushed(w, r.PushResult, begun)
		case errors.Is(err, providers.ErrNotExist): // there is no revision yet
			return nil
		case !errors.Is(err, providers.ErrConflict) || o.Lease != "" || try >= maxTries:
			return err
		}
		w.Moved()
		if err := p.catchUp(w, r); err != nil {
			return err
		}
	}
}

// catchUp pulls the revisions of others, and puts the local ones on top: commits that were made
// anew are in place, changes that were taken back are committed.
func (p *Pusher) catchUp(ctx context.Context, r *PushReport) error {
	pull, err := p.o.Copy.Pull(ctx)
	if r.Pull.Add(pull); pull.TakenBack {
		r.Commit.Changes = 0 // the previous try's commit was taken back too
	}
	if err != nil {
		return err
	}
	v := p.f.o.Tree.Lock()
	u := UnpushedOf(v)
	p.f.o.Tree.Unlock()
	if u != nil && u.Commits > 0 {
		return nil
	}
	commit, err := p.o.Copy.Recommit(ctx)
	r.Commit.Add(commit)
	return err
}

// pushed records that the remote has the commits that existed when the push began.
func (p *Pusher) pushed(ctx context.Context, result providers.PushResult, begun PushBegun) error {
	if result.Pushed && result.Revision != "" {
		if err := p.f.setUpstream(ctx, result.Revision); err != nil {
			return err
		}
	}
	return p.f.o.Host.Update(func(tx *tree.Tx) error { return p.f.backlog.Pushed(tx, begun) })
}

// Begin is Push in the background, after a commit. A commit that is made during one makes another
// follow it.
func (p *Pusher) Begin() {
	v := p.f.o.Tree.Lock()
	defer p.f.o.Tree.Unlock()
	p.wanted = true
	if p.running || p.o.Copy.IsClosed(v) {
		return
	}
	p.running = true
	p.o.Copy.Go(func() {
		for p.next() {
			_, _ = p.Push(p.o.Context, providers.PushOptions{}) // the table has the result
		}
	})
}

// next takes up the push that is wanted, if one is.
func (p *Pusher) next() bool {
	v := p.f.o.Tree.Lock()
	defer p.f.o.Tree.Unlock()
	p.running = p.wanted && !p.o.Copy.IsClosed(v)
	p.wanted = false
	return p.running
}
