package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// request is somebody's Commit of a set.
type request struct {
	opts   CommitOptions
	due    uint64
	tried  bool
	done   chan struct{}
	report CommitReport
	err    error

	clashes []string // conflicts that were found while its set was sent
	landed  int      // names that the backend has since then, whoever found that out
}

// set is a set with its content, on its way.
type set struct {
	*commit.Set
	content *commit.Bodies // of the last attempt to send it; nil: there was none
}

// setCommitter is the committer where the backend takes sets: all that is due goes as one
// change, see commit.Set. Names that cannot go are held back by the engine as where they go one by
// one, and what an earlier run began to send by itself it ends by itself. The lock of the
// volume guards all fields that change.
type setCommitter struct {
	v      *Volume
	remote providers.Committer

	requests []*request      // in order
	sending  bool            // a set is under way
	stirs    uint64          // of what is pending when it began: more, and what it leaves out may go by now
	moot     int             // sets in a row that what they were to send had changed under
	err      error           // why the last one failed
	old      []table.Link    // names with attempts of their own
	found    commit.Findings // content that holds a secret
}

// commit implements committer.
func (c *setCommitter) commit(ctx context.Context, o CommitOptions, due uint64) (CommitReport, error) {
	v := c.v
	r := &request{opts: o, due: due, done: make(chan struct{})}
	locked := v.lock()
	v.engine.send.Jobs().ForgiveAll(locked.View)
	c.requests = append(c.requests, r)
	v.pending.Stir()
	locked.unlock()
	v.pending.Kick()
	var err error
	select {
	case <-r.done:
		return r.report, r.err
	case <-ctx.Done():
		err = v.late(context.Cause(ctx))
	case <-v.ctx.Done():
		err = providers.ErrClosed
	}
	locked = v.lock()
	defer locked.unlock()
	c.requests = slices.DeleteFunc(c.requests, func(other *request) bool { return other == r })
	return CommitReport{}, err
}

// isAsked implements committer.
func (c *setCommitter) isAsked() bool { return len(c.requests) > 0 }

// stopped implements committer.
func (c *setCommitter) stopped() (cause error, final bool) {
	if cause, final = c.v.engine.stopped(); cause != nil || c.err == nil {
		return cause, final
	}
	return c.err, !passing(c.err)
}

// conflict implements committer.
func (c *setCommitter) conflict(l table.Link, path string) (heard bool) {
	heard = c.v.engine.conflict(l, path)
	if c.sending && len(c.requests) > 0 {
		c.requests[0].clashes = append(c.requests[0].clashes, path)
		heard = true
	}
	return heard
}

// status implements committer.
func (c *setCommitter) status(v *View, s *Status) {
	c.v.engine.status(v, s)
	if c.err != nil {
		s.LastError = c.err.Error()
	}
}

// look has a set sent when one is due. One is under way at a time.
func (c *setCommitter) look() {
	v := c.v
	locked := v.lock()
	defer locked.unlock()
	if !locked.closed {
		locked.learnAhead()
	}
	var r *request
	if len(c.requests) > 0 {
		r = c.requests[0]
	}
	rests := c.v.engine.send.IsPaused() && (r == nil || r.tried) // who asks anew need not wait for the end of a rest
	if c.sending || rests || locked.closed || c.resolveOld(locked) {
		return
	}
	due := v.pending.Due()
	if r != nil {
		due = max(due, r.due)
	}
	first := uint64(0)
	locked.table.Dirty(0, func(seq uint64, _ table.Link) bool { first = seq; return false })
	halted := c.v.engine.halt.err != nil && !locked.massDelete.IsConfirmed(massdelete.Commit)
	if r == nil && (first == 0 || first > due || halted) && !commit.IsUnresolved(locked.View) {
		return
	}
	c.sending, c.stirs = true, v.pending.Stirs()
	if r != nil {
		r.tried = true
	}
	v.background(func() {
		w := v.doing.beating(v.wait(nil, v.o.Patience))
		defer w.close()
		c.v.doing.wait.Store(w)
		report, err := c.sendSet(w, r, due)
		c.v.doing.wait.Store(nil)
		c.v.doing.now.Store(nil)
		c.sentSet(r, report, w.cause(err))
	})
}

// resolveOld finds out about changes that were begun one by one, before the working copy
// got a policy of sets; it reports whether there are any.
func (c *setCommitter) resolveOld(v *View) bool {
	c.old = slices.DeleteFunc(c.old, func(l table.Link) bool {
		c.v.engine.send.Resolve(v.View, l)
		return v.Record(l).Attempt == nil
	})
	return len(c.old) > 0
}

// sentSet tells who asked for a set, and decides what becomes of it.
func (c *setCommitter) sentSet(r *request, report CommitReport, err error) {
	v := c.v
	locked := v.lock()
	c.sending = false
	switch {
	case err == nil:
		c.v.engine.send.Reached()
		v.fails(chores.Commit, nil)
		c.moot, c.err = 0, nil
		c.idleSet(locked, report)
	case errors.Is(err, upload.ErrAgain):
		if c.moot++; c.moot > maxTries {
			c.v.engine.send.Pause(upload.PauseAfter(c.moot))
		}
		locked.unlock()
		c.v.pending.Kick()
		return
	case errors.Is(err, ErrMassDelete):
	default:
		c.restSet(locked, err)
	}
	if r != nil && v.ctx.Err() == nil && (err == nil || !passing(err) || errors.Is(err, errPatience)) {
		c.requests = slices.DeleteFunc(c.requests, func(other *request) bool { return other == r })
		report.Conflicts = names(report.Conflicts, r.clashes)
		report.Changes, report.Committed = r.landed, r.landed > 0
		r.report, r.err = report, err
		close(r.done)
	}
	v.pending.Review(locked.View)
	locked.unlock()
	if err == nil {
		v.pending.Arrived()
	}
	if err == nil && report.Committed && v.o.Policy.Push {
		v.pushes.begin(v)
	}
	c.v.pending.Kick()
}

// idleSet waits for a change when a set left nothing to send: what it left out would be
// left out again, unless something has stirred since the set began.
func (c *setCommitter) idleSet(v *View, report CommitReport) {
	if report.Changes == 0 && v.pending.Stirs() == c.stirs {
		v.pending.Defer()
		c.v.engine.send.Stalled(v.View)
	}
}

// restSet has the next set wait. What will not pass by itself is told, once: no name is
// held back for it, and yet nothing goes.
func (c *setCommitter) restSet(v *View, err error) {
	if !passing(err) && (c.err == nil || c.err.Error() != err.Error()) {
		v.background(func() { c.v.report("commit", "", err) })
	}
	c.err = err
	v.fails(chores.Commit, err)
	c.v.engine.send.Failed(err)
	c.v.engine.send.Pause(upload.PauseAfter(c.v.engine.send.Backoff().Failures()))
}

// sendSet finds out about an open set first, then makes and sends one.
func (c *setCommitter) sendSet(ctx context.Context, r *request, due uint64) (CommitReport, error) {
	if err := c.resolveSet(ctx); err != nil {
		return CommitReport{}, err
	}
	v := c.v
	if err := v.o.Guard.Secrets.Wait(ctx); err != nil {
		return CommitReport{}, err
	}
	defer v.kept.End()
	losses := map[string]int{} // of one name in a row, not of the set: others may change many names
	for {
		s, u, err := c.makeSet(ctx, due)
		if err != nil {
			return CommitReport{}, err
		}
		c.holdStopped(s.Stopped)
		report := c.leftOut(s)
		if len(s.Order) == 0 {
			return report, nil
		}
		report.Changes = len(s.Order)
		// What the backend gets must be known here after a loss of power too,
		// or it would look like another's change.
		if err := v.tree.Sync(); err != nil {
			return report, err
		}
		report.Revision, report.Committed, err = c.commitOne(ctx, s, u, r)
		if err == nil || providers.MayHaveHappened(err) {
			return report, err
		}
		if at := culprit(err); losses[at] >= maxTries {
			return report, err
		} else {
			losses[at]++
		}
		if err = c.setRefused(ctx, s, err); err != nil {
			return report, err
		}
	}
}

// commitOne sends a set and notes what it left.
func (c *setCommitter) commitOne(ctx context.Context, s *set, u commit.Unresolved, r *request) (providers.Revision, bool, error) {
	v := c.v
	head := v.head.Move()
	defer head.Release()
	if stale, err := c.outdated(ctx, head, s, u.Op); stale {
		return "", false, errors.Join(err, upload.ErrAgain)
	}
	err := c.hydrateRemoved(ctx, s)
	if err == nil {
		s.content, err = s.Open(ctx, c.bodies())
	}
	if err != nil {
		return "", false, errors.Join(err, c.dropSet(u))
	}
	defer s.content.Close()
	result := providers.CommitResult{}
	if len(s.Changes) > 0 {
		change := providers.ChangeSet{Changes: s.Changes, Op: u.Op, Message: s.Message(), Merge: recorded(v, revision.Merging)}
		if r != nil {
			change.Author, change.CoAuthors, change.Trailers = r.opts.Author, r.opts.CoAuthors, r.opts.Trailers
			if r.opts.Message != "" {
				change.Message = r.opts.Message
			}
		}
		if result, err = c.remote.Commit(ctx, change); err != nil {
			if providers.MayHaveHappened(err) {
				return "", false, err
			}
			return "", false, errors.Join(s.content.Cause(err), c.dropSet(u))
		}
	}
	return result.Revision, result.Committed, c.noteSet(u, result, result.Committed)
}

// bodies are what the content of sets is read by.
func (c *setCommitter) bodies() commit.BodyOptions {
	v := c.v
	return commit.BodyOptions{
		Tree: v.tree, IsOpen: v.held.open.IsOpen, Guard: &v.o.Guard, Moving: v.engine.moving, Log: v.o.Log,
		Pack: func(ctx context.Context, p *commit.Planned) (*upload.Payload, error) {
			return v.kept.Pack(ctx, p, v.engine.exec.Pack)
		},
		Found: func(ino table.Ino, f commit.Finding) {
			locked := v.lock()
			defer locked.unlock()
			c.found[ino] = f
		},
		Progress: func(done, total int) { v.doing.goesOn(doesSend, done, total) },
	}
}

// outdated reports whether a pull came between the making of a set and its
// sending: one that ended has settled it, and after one that did not, or a crash,
// the table must first say what the head has.
func (c *setCommitter) outdated(ctx context.Context, head revision.Moving, s *set, op string) (stale bool, err error) {
	v := c.v
	locked := v.lock()
	first := locked.Record(s.Order[0].Link).Attempt // settling a set takes the attempts of all its names away
	locked.unlock()
	store, ok := v.syncer()
	level := true
	if ok {
		if level, err = v.isSynced(ctx, head.Held, store); err != nil {
			return true, err
		}
	}
	if level {
		return first == nil || first.Op != op, nil
	}
	if err := c.resolveUnmoved(ctx, head); err != nil {
		return true, err
	}
	return true, c.syncWithHead(ctx, head, store)
}

// setRefused decides what to do about a set that was not taken: the name that is
// in the way is looked at, or held back. nil: try again with what is left.
func (c *setCommitter) setRefused(ctx context.Context, s *set, cause error) error {
	var body *commit.BodyError
	if errors.As(cause, &body) {
		if err := (uploading{c.v}).Unsendable(ctx, body.Link, body.Err); err == upload.ErrAgain { // never wrapped
			return nil
		}
	}
	if passing(cause) || providers.MayHaveHappened(cause) || errors.Is(cause, upload.ErrAgain) {
		return cause
	}
	if body != nil {
		c.v.engine.holdName(body.Link, body.Err)
		if g := commit.RefusalOf(cause); g != nil && g.Secret {
			s.content.SearchAll(ctx)
		}
		return nil
	}
	names := s.About(cause)
	if len(names) == 0 {
		return cause
	}
	for _, p := range names {
		err := cause
		switch {
		case errors.Is(cause, providers.ErrTooLarge) && p.Index >= 0 && s.Changes[p.Index].Body.Size > c.v.o.Guard.MaxFile:
			err = c.v.o.Guard.TooLarge(s.Changes[p.Index].Body.Size) // until it has changed
		case p.Ino == 0 && errors.Is(cause, providers.ErrNotEmpty):
			if err = c.v.engine.exec.Resurrect(p.Link, cause); errors.Is(err, upload.ErrAgain) {
				err = nil
			}
		case lostRace(cause) && p.Index >= 0 && !s.Changes[p.Index].From.IsRoot():
			// What was to be taken from one of its places may be gone.
			err = c.lostAll(ctx, append(c.v.remoteLinksOf(p.Ino), p.Link), cause)
		case lostRace(cause):
			err = c.v.preconditionFailed(ctx, p.Link, cause)
		}
		if err == nil {
			continue
		}
		if passing(err) {
			return err
		}
		c.v.engine.holdName(p.Link, err)
	}
	return nil
}

func (c *setCommitter) lostAll(ctx context.Context, names []table.Link, cause error) error {
	for _, l := range names {
		if err := c.v.preconditionFailed(ctx, l, cause); err != nil {
			return err
		}
	}
	return nil
}

// culprit is the place that an error is about, or the name; "" of none.
func culprit(err error) string {
	var body *commit.BodyError
	if errors.As(err, &body) {
		return fmt.Sprint(body.Link)
	}
	var at *providers.Error
	if !errors.As(err, &at) {
		return ""
	}
	return at.Locator.String()
}

// leftOut lists what a set has to leave out, as far as it is not settled by now.
func (c *setCommitter) leftOut(s *set) (r CommitReport) {
	v := c.v
	for piece := range slices.Chunk(s.Left, setPiece) {
		locked := v.lock()
		for _, l := range piece {
			rec := locked.Record(l)
			if rec.Seq == 0 {
				continue
			}
			h := c.v.engine.heldBack(locked, l, rec)
			r.HeldBack = append(r.HeldBack, h)
			if h.Conflict {
				r.Conflicts = append(r.Conflicts, h.Path)
			}
		}
		locked.unlock()
	}
	locked := v.lock()
	r.Revision = revision.Committed(locked.table)
	locked.unlock()
	return r
}
