package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/commits"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/freshness"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/cmd/internal/wording"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// syncer applies the sync block of one workspace to its working copy. Package
// syncpolicy decides which event pulls, commits and pushes; the syncer does it. Its
// parts supply the reports, the actor, the author and the branch.
type syncer struct {
	name string // of the workspace
	r    *host.Resolved
	sync mountspec.Sync
	copy *workingCopy
	syncerOptions

	readOnly     bool
	writeThrough bool // closes wait for the store, and no event is followed

	gate      *gate
	actor     *actor
	author    *wording.Author
	report    *reporter
	branches  *branches
	freshness *freshness.Freshness
	retries   retries
	outcomes  control.Outcomes

	noPush bool     // at the end: all was just pushed
	stop   []func() // subscriptions

	mu    sync.Mutex  // guards later
	later *time.Timer // follows an event that the mount noticed by itself
}

// syncerOptions are the objects that a syncer shares with its daemon.
type syncerOptions struct {
	bus      *lifecycle.Bus
	log      *slog.Logger
	audit    *audit.Log
	now      func() time.Time
	identity func(ref string) (mountspec.IdentityEntry, bool) // of the host configuration
}

func newSyncer(r *host.Resolved, w *workingCopy, o syncerOptions) (*syncer, error) {
	k := &syncer{name: r.Address.String(), r: r, sync: r.Storage.Sync, copy: w, freshness: w.freshness, syncerOptions: o, readOnly: w.readOnly}
	k.writeThrough = k.sync.Mode != mountspec.ModePullPush && (!w.noWait || k.sync.Commit.On == "")
	k.gate = newGate(k.name, k.log)
	k.actor = &actor{tell: w.SetActor}
	var err error
	k.author, err = wording.New(wording.Options{Workspace: k.name, Template: k.sync.Commit.Template, Identity: r.Identity, Host: o.identity, Who: k.actor.who, Now: o.now})
	if err != nil {
		return nil, err
	}
	k.report = &reporter{name: k.name, conflict: k.sync.Conflict, copy: w, bus: k.bus, audit: k.audit, log: k.log}
	k.branches = newBranches(k.sync, w.provider, k.readOnly, k.now)
	k.retries = retries{clock: k.now, pause: k.pause}
	w.syncer = k
	w.messages.Bind(commits.Bound{Words: k.author.Compose, Begin: k.beginCommit, Committed: k.commitTaken, Pushed: k.report.pushTaken, Log: k.log})
	k.listen()
	return k, nil
}

// listen subscribes to the events that no session announces.
func (k *syncer) listen() {
	if k.writeThrough {
		return
	}
	for _, t := range syncpolicy.Heard(k.sync) {
		k.stop = append(k.stop, k.bus.On(string(t), func(e lifecycle.Event) {
			if e.Source.Kind != lifecycle.SourceSession { // the session's own call follows it, and waits
				k.noticed(e)
			}
		}))
	}
}

// noticed follows an event in the background, after a time; of several within it only
// the last.
func (k *syncer) noticed(e lifecycle.Event) {
	for _, a := range k.actions(syncpolicy.Event{Kind: syncpolicy.Noticed, Name: mountspec.Trigger(e.Name).Resolve()}) {
		k.mu.Lock()
		if k.later != nil {
			k.later.Stop()
		}
		if k.gate.ctx.Err() == nil {
			k.later = time.AfterFunc(a.For, func() {
				if _, err := k.handle(k.gate.ctx, e); err != nil && k.gate.ctx.Err() == nil {
					k.log.Warn("an event could not be followed", "workspace", k.name, "event", e.Name, "err", err)
				}
			})
		}
		k.mu.Unlock()
	}
}

// handle follows an event in this workspace, and waits until that is done.
func (k *syncer) handle(ctx context.Context, e lifecycle.Event) (out control.EventResult, err error) {
	if err := k.gate.take(ctx); err != nil {
		return out, err
	}
	defer k.gate.give()
	defer k.freshness.Look() // a turn may have ended, or a commit been made
	defer k.branches.look(k.gate.ctx)
	event := syncpolicy.On(mountspec.Trigger(e.Name))
	defer func() { k.outcomes.Add(e.Name, out, err) }()
	err = k.rebranch(ctx, e.Payload, &out)
	k.actor.follow(event.Name, e.Payload)
	err = errors.Join(err, k.follow(ctx, event, words{e.Payload["message"], e.Payload["summary"]}, &out))
	if !k.writeThrough {
		k.report.unreported(k.gate.ctx, &out)
	}
	k.actor.ended(event.Name)
	return out, err
}

// open follows workspace-open, the first event of all.
func (k *syncer) open() {
	if k.gate.take(k.gate.ctx) != nil {
		return
	}
	k.gate.behind(func(ctx context.Context) error {
		event := syncpolicy.On(mountspec.EventWorkspaceOpen)
		k.actor.follow(event.Name, nil)
		defer k.branches.look(k.gate.ctx)
		var out control.EventResult
		err := errors.Join(k.rebranch(ctx, nil, &out), k.follow(ctx, event, words{}, &out))
		k.outcomes.Add(string(event.Name), out, err)
		return err
	})
}

// tick does the work in the background that is due by time: it pulls the pushes of
// others, and retries sends that failed, in this mount or in the one before it.
// operations is the number of kernel requests so far.
func (k *syncer) tick(operations uint64) {
	if k.sync.Mode != mountspec.ModePullPush {
		return
	}
	k.branches.lookAgain(k.gate.ctx)
	if !k.gate.tryTake() { // an event is being followed; the next tick tries again
		return
	}
	state := k.state()
	state.Age, state.Used = k.freshness.Age(operations)
	state.PullDue = k.retries.fetchDue()
	state.PushDue, state.PullRequestDue = k.retries.due(syncpolicy.OwesPush(k.sync, state), k.pullsMissing())
	list := syncpolicy.Actions(k.sync, syncpolicy.Event{Kind: syncpolicy.Tick}, state)
	if len(list) == 0 {
		k.gate.give()
		return
	}
	if list[0].Do == syncpolicy.Pull {
		k.freshness.Begin(operations)
	}
	go k.behind(list)
}

// behind does a list of actions in the background, with the gate's token.
func (k *syncer) behind(list []syncpolicy.Action) {
	k.gate.behind(func(ctx context.Context) error {
		defer k.branches.look(k.gate.ctx)
		known := k.freshness.Stale()
		var out control.EventResult
		err := k.do(ctx, list, words{}, &out)
		k.outcomes.Add(control.EventByItself, out, err)
		if known != nil && list[0].Do == syncpolicy.Pull {
			return nil // it was reported when it began to fail
		}
		return err
	})
}

// asked does a user's request, at any time, whenever the manifest would do it. It is
// refused only if the policy does not grant it, or the working copy is read-only.
func (k *syncer) asked(ctx context.Context, r control.SyncRequest, out *control.EventResult) (err error) {
	if err := k.gate.take(ctx); err != nil {
		return err
	}
	defer k.gate.give()
	defer k.branches.look(k.gate.ctx)
	defer func() { k.outcomes.Add(r.Verb, *out, err) }()
	if r.Confirm {
		report, err := k.copy.Confirm(ctx)
		if err != nil {
			return err
		}
		k.report.pulled(report, out)
	}
	event := syncpolicy.Event{Kind: syncpolicy.AskedCommit, NoWait: r.NoWait}
	needs := policy.Commit
	switch {
	case r.Verb == control.VerbPull:
		event.Kind, needs = syncpolicy.AskedPull, ""
	case r.Verb == control.VerbPush && r.PR:
		event.Kind, needs = syncpolicy.AskedPullRequest, policy.Push
	case r.Verb == control.VerbPush:
		event.Kind, needs = syncpolicy.AskedPush, policy.Push
	}
	if needs != "" {
		if err := k.allowed(needs); err != nil {
			return err
		}
	}
	return k.follow(ctx, event, words{message: r.Message}, out)
}

// upload commits, and then pushes.
func (k *syncer) upload(ctx context.Context) (out control.EventResult, err error) {
	err = k.asked(ctx, control.SyncRequest{Verb: control.VerbCommit, NoWait: true}, &out)
	if k.copy.Status().Unpushed == nil {
		return out, err
	}
	k.noPush = true
	return out, errors.Join(err, k.asked(ctx, control.SyncRequest{Verb: control.VerbPush}, &out))
}

// leave ends the syncer's work in the background.
func (k *syncer) leave() {
	for _, stop := range k.stop {
		stop()
	}
	k.gate.cancel()
}

// finish follows the unmount, the last event. The error names the changes that
// policy wanted sent and that are not.
func (k *syncer) finish(ctx context.Context) error {
	k.leave()
	busy := k.gate.close(ctx)
	if busy == nil {
		k.actor.follow(mountspec.EventWorkspaceClose, nil)
	}
	errs := []error{busy}
	var out control.EventResult
	for _, a := range k.actions(syncpolicy.Event{Kind: syncpolicy.Unmount}) {
		if a.Do != syncpolicy.Drain && busy != nil || a.Do == syncpolicy.Push && k.noPush {
			continue // the event under way does it, or the next mount
		}
		before := k.copy.Status().HeldCount
		errs = append(errs, k.perform(ctx, a, words{}, &out))
		switch s := k.copy.Status(); {
		case a.Do == syncpolicy.Commit && out.HeldBack > 0:
			errs = append(errs, cmp.Or(k.allowed(policy.Commit), k.heldBack()))
		case a.Do == syncpolicy.Push && s.HeldCount > before:
			errs = append(errs, k.heldBack())
		case a.Do == syncpolicy.Push && s.Unpushed != nil:
			errs = append(errs, k.allowed(policy.Push))
		}
	}
	return errors.Join(errs...)
}

// words are a caller's texts for a commit.
type words struct {
	message string // its own words
	summary string // fills the manifest's template
}

// state is the input of syncpolicy, without the fields that only tick needs.
func (k *syncer) state() syncpolicy.State {
	s := k.copy.Status()
	state := syncpolicy.State{ReadOnly: k.readOnly, WriteThrough: k.writeThrough, InTurn: k.actor.now().inTurn,
		Dirty: s.Queued > 0, PullOwed: k.freshness.PutOff() != "", PullFails: k.freshness.Stale() != nil}
	if s.Unpushed != nil {
		state.Unpushed, state.PushBegun = true, !s.Unpushed.Owed.IsZero()
	}
	return state
}

// owesPush reports whether commits are to be pushed by themselves.
func (k *syncer) owesPush() bool { return syncpolicy.OwesPush(k.sync, k.state()) }

func (k *syncer) actions(e syncpolicy.Event) []syncpolicy.Action {
	return syncpolicy.Actions(k.sync, e, k.state())
}

// follow does the actions of an event.
func (k *syncer) follow(ctx context.Context, e syncpolicy.Event, w words, out *control.EventResult) error {
	return k.do(ctx, k.actions(e), w, out)
}

// do does all actions of a list, even if some fail.
func (k *syncer) do(ctx context.Context, list []syncpolicy.Action, w words, out *control.EventResult) error {
	var errs []error
	for _, a := range list {
		errs = append(errs, k.perform(ctx, a, w, out))
	}
	return errors.Join(errs...)
}

// perform does one action, if its condition holds after those before it.
func (k *syncer) perform(ctx context.Context, a syncpolicy.Action, w words, out *control.EventResult) error {
	if !k.holds(a.If, out) {
		return nil
	}
	switch a.Do {
	case syncpolicy.Commit:
		if a.Message == syncpolicy.FromTemplate {
			w = words{}
		}
		return k.commit(ctx, w, out)
	case syncpolicy.Push:
		return k.push(ctx, a.PullRequest, out)
	case syncpolicy.Pull:
		return k.pull(ctx, out)
	case syncpolicy.PutOff:
		k.freshness.Owe("a turn is under way")
		return nil
	case syncpolicy.Propose:
		return k.proposeMissing(ctx, out)
	case syncpolicy.Drain:
		return k.copy.Drain(ctx, nil)
	case syncpolicy.Refuse:
		return fmt.Errorf("nothing is sent: %w", fs.ErrReadOnly)
	}
	return fmt.Errorf("%v cannot be done", a)
}

func (k *syncer) holds(c syncpolicy.Condition, out *control.EventResult) bool {
	now := k.state()
	is := func(condition syncpolicy.Condition, holds bool) bool { return c&condition != 0 && holds }
	return c == 0 || is(syncpolicy.Committed, out.Committed > 0) || is(syncpolicy.Pushed, out.Pushed > 0) ||
		is(syncpolicy.PullOwed, now.PullOwed && !now.Dirty && !now.InTurn) ||
		is(syncpolicy.Unpushed, now.Unpushed) || is(syncpolicy.PushBegun, now.PushBegun)
}

// pause returns how long a failed operation waits until it is tried again.
func (k *syncer) pause(f syncpolicy.Failure) (wait time.Duration, again bool) {
	list := syncpolicy.Actions(k.sync, syncpolicy.Event{Kind: syncpolicy.Failed, Failure: f}, syncpolicy.State{ReadOnly: k.readOnly})
	if len(list) == 0 {
		return 0, false
	}
	return list[0].For, true
}
