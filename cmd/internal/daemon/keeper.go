package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/providers"
)

// keeper applies the sync block of one workspace to its working copy: which
// event pulls, commits and pushes, and as whom (AIP-35, "Sync"; AIP-37).
//
// Nothing is pulled between turn-start and turn-end unless the manifest names
// an event inside the turn. A pull asks the remote but leaves a working copy
// alone that has changes; it is tried again when they are committed. What the
// storage itself emits may push and pull, and never commits.
type keeper struct {
	name   string // of the workspace
	r      *host.Resolved
	sync   mountspec.Sync
	events bool // the sync block counts: pull-push, or canonical with write-back
	copy   *workingCopy

	readOnly bool
	keeperOptions

	template *mountspec.Template
	noPush   bool     // at the end: all was just pushed, or is known not to go, or an event is still followed
	stop     []func() // subscriptions
	ctx      context.Context
	cancel   context.CancelFunc
	busy     chan struct{} // holds a token while an event is followed

	mu       sync.Mutex // guards what follows
	turn     string     // the turn under way, "" between turns
	inTurn   bool
	talk     string // the conversation under way
	unnamed  string // names its branch until an event does, if none has a name yet
	operator string // who the events speak for: a configured identity, or free text
	summary  string // of the commit under way
	owed     string // why a pull was put off, or empty
	lastPull time.Time
	used     uint64 // operations of the kernel at that time
	quiet    bool   // a commit or push of this keeper's own is under way
	later    *time.Timer
	giveWay  func() // ends a pull in the background

	pushAgain, pullsAgain again              // what failed in the background
	branches              providers.Branches // when they were last looked at
	unlooked              bool               // something was committed since
	held                  *heldPush          // a push of this keeper's own is under way
}

// keeperOptions are what a keeper shares with its daemon.
type keeperOptions struct {
	bus      *lifecycle.Bus
	log      *slog.Logger
	audit    *audit.Log
	now      func() time.Time
	identity func(ref string) (mountspec.IdentityEntry, bool) // of the host configuration
}

func newKeeper(r *host.Resolved, w *workingCopy, o keeperOptions) (*keeper, error) {
	k := &keeper{name: r.Address.String(), r: r, sync: r.Storage.Sync, copy: w, keeperOptions: o, busy: make(chan struct{}, 1), readOnly: w.readOnly}
	k.events = k.sync.Mode == mountspec.ModePullPush || w.noWait && k.sync.Commit.On != ""
	text := k.sync.Commit.Template
	if text == "" {
		text = mountspec.DefaultTemplate
	}
	var err error
	if k.template, err = mountspec.ParseTemplate(text); err != nil {
		return nil, err
	}
	id := make([]byte, 8)
	rand.Read(id) // never fails
	k.unnamed, k.unlooked = hex.EncodeToString(id), true
	k.ctx, k.cancel = context.WithCancel(context.Background())
	w.keeper = k
	w.name.bind(k.compose, k.sent, k.arrived)
	k.listen()
	return k, nil
}

// listen subscribes to the events that happen without anybody telling: idle
// times, and changes in the mount. The working copy itself follows each write.
func (k *keeper) listen() {
	if !k.events {
		return
	}
	seen := map[mountspec.Trigger]bool{}
	for i, t := range []mountspec.Trigger{k.sync.Commit.On, k.sync.Push.On, k.sync.Pull.On} {
		t = t.Resolve()
		_, _, idle := t.Templated()
		change := t == mountspec.EventDelete || t == mountspec.EventWrite && i > 0
		if seen[t] || !idle && !change {
			continue
		}
		seen[t] = true
		k.stop = append(k.stop, k.bus.On(string(t), func(e lifecycle.Event) {
			if e.Source.Kind != lifecycle.SourceSession { // who tells of an event waits for it to be followed
				k.afterwards(e)
			}
		}))
	}
}

// afterwards follows an event in the background; of several within the batch
// window only the last.
func (k *keeper) afterwards(e lifecycle.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return
	}
	if k.later != nil {
		k.later.Stop()
	}
	k.later = time.AfterFunc(k.sync.Commit.Batch, func() {
		if _, err := k.handle(k.ctx, e); err != nil && k.ctx.Err() == nil {
			k.log.Warn("an event could not be followed", "workspace", k.name, "event", e.Name, "err", err)
		}
	})
}

// take waits for the event under way to be done with; a pull in the background
// gives way. The error is ctx's, or errClosed.
func (k *keeper) take(ctx context.Context) error {
	k.mu.Lock()
	if k.giveWay != nil {
		k.giveWay()
	}
	k.mu.Unlock()
	select {
	case k.busy <- struct{}{}:
		if k.ctx.Err() != nil {
			k.give()
			return fmt.Errorf("%s: %w", k.name, errClosed)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: another event is still being followed: %w", k.name, ctx.Err())
	}
}

// behind runs f, which holds the token, until it is done or somebody wants to
// have an event followed.
func (k *keeper) behind(f func(ctx context.Context) error) {
	defer k.give()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	k.mu.Lock()
	k.giveWay = cancel
	k.mu.Unlock()
	if err := f(ctx); err != nil && ctx.Err() == nil {
		k.log.Warn("the remote cannot be asked", "workspace", k.name, "err", err)
	}
}

func (k *keeper) give() { <-k.busy }

// handle does what an event asks of this workspace, and waits for it.
func (k *keeper) handle(ctx context.Context, e lifecycle.Event) (out control.EventResult, err error) {
	if err := k.take(ctx); err != nil {
		return out, err
	}
	defer k.give()
	defer k.look()
	name := mountspec.Trigger(e.Name).Resolve()
	if k.events {
		err = k.rebranch(ctx, e.Payload, &out)
	}
	k.follow(name, e.Payload)
	if k.events {
		err = errors.Join(err, k.do(ctx, name, e.Payload, &out))
		k.missed(&out)
	}
	k.ended(name)
	return out, err
}

// do commits, pushes and pulls as the event asks. What that makes the storage
// emit may push and pull in turn.
func (k *keeper) do(ctx context.Context, name mountspec.Trigger, vars map[string]string, out *control.EventResult) error {
	var errs []error
	a := k.actions(name)
	if a.commit {
		errs = append(errs, k.commit(ctx, vars["message"], vars["summary"], out))
	}
	pull := a.pull
	if out.Committed > 0 {
		pull = max(pull, a.pullCommits)
	}
	if a.push || a.pushCommits && k.copy.Status().Unpushed != nil {
		errs = append(errs, k.push(ctx, out))
	}
	if out.Pushed > 0 {
		pull = max(pull, a.pullPushes)
	}
	if pull == afterTurn {
		k.owe("a turn is under way")
	}
	if pull == now || k.due() {
		errs = append(errs, k.pull(ctx, out))
	}
	return errors.Join(errs...)
}

// follow notes the turn and the conversation that an event belongs to, and on
// whose behalf the tree changes from now on.
func (k *keeper) follow(name mountspec.Trigger, vars map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id := vars["conversationId"]; id != "" {
		k.talk = id
	}
	if id := vars["turnId"]; id != "" {
		k.turn = id
	}
	if who := vars["operator"]; who != "" {
		k.operator = who
	}
	switch name {
	case mountspec.EventTurnStart:
		k.inTurn = true
	case mountspec.EventTurnEnd, mountspec.EventTurnError, mountspec.EventConversationEnd:
		k.inTurn = false
	}
	k.act(string(name))
}

// ended forgets a turn or a conversation that is over, once it has been
// committed. What changes from then on follows the event, and is part of neither.
func (k *keeper) ended(name mountspec.Trigger) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch name {
	case mountspec.EventConversationEnd:
		k.talk, k.turn = "", ""
	case mountspec.EventTurnEnd, mountspec.EventTurnError:
		k.turn = ""
	default:
		return
	}
	k.act(string(name))
}

// act tells the history who acts. mu is held.
func (k *keeper) act(event string) {
	k.copy.SetActor(cache.Actor{Name: k.operator, Event: event, Turn: k.turn, Conversation: k.talk})
}

// actions are what an event asks of the working copy now.
func (k *keeper) actions(e mountspec.Trigger) actions {
	k.mu.Lock()
	defer k.mu.Unlock()
	return actionsFor(k.sync, e, syncState{readOnly: k.readOnly, inTurn: k.inTurn})
}

// pushesCommits reports whether each commit is pushed.
func (k *keeper) pushesCommits() bool {
	return actionsFor(k.sync, mountspec.EventCommitCompleted, syncState{readOnly: k.readOnly}).push
}

// owe notes why a pull is put off.
func (k *keeper) owe(reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owed = reason
}

// due reports whether a pull that was put off can be done now.
func (k *keeper) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owed != "" && !k.inTurn && k.copy.Status().Queued == 0
}

// pull asks the remote, and leaves a working copy with changes alone.
func (k *keeper) pull(ctx context.Context, out *control.EventResult) error {
	k.emit(mountspec.EventPullStarted, map[string]string{"provider": k.r.Storage.Provider})
	before := k.copy.Status()
	report, err := k.copy.Pull(ctx, cache.PullOptions{IfClean: k.sync.Mode == mountspec.ModePullPush})
	if err != nil {
		k.emit(mountspec.EventPullFailed, map[string]string{"error": err.Error()})
		return fmt.Errorf("%s: pull: %w", k.name, err)
	}
	k.mu.Lock()
	k.owed, k.lastPull = report.Skipped, k.now()
	k.mu.Unlock()
	if report.Skipped != "" {
		k.log.Info("a pull is put off", "workspace", k.name, "reason", report.Skipped)
		k.emit(mountspec.EventPullFailed, map[string]string{"error": "put off: " + report.Skipped})
		out.PutOff = append(out.PutOff, k.name+": "+report.Skipped)
		return nil
	}
	k.pulled(report, out)
	k.emit(mountspec.EventPullCompleted, map[string]string{"ref": string(report.Revision)})
	if before.Queued > 0 || before.Unpushed == nil || k.copy.Status().Queued == 0 {
		return nil
	}
	// What was committed and not pushed has become changes on top of what
	// others have pushed: it is committed again.
	return k.commit(ctx, "", "", out)
}

// allowed asks the policy now, since grants end (AIP-38).
func (k *keeper) allowed(action string) error {
	if k.sync.Mode != mountspec.ModePullPush {
		return nil
	}
	d := k.r.Evaluate(action, k.now())
	if d.Allow {
		return nil
	}
	err := k.audit.Write(audit.PolicyDecision{Workspace: k.name, Principal: k.r.Principal, Action: action, Decision: "deny", Reason: string(d.Reason)})
	return errors.Join(fmt.Errorf("%s: %w for %s: %s", action, errNotGranted, k.r.Principal, d.Reason), err)
}

var errNotGranted = errors.New("the policy does not grant it")

// granted is allowed for what a person asks for.
func (k *keeper) granted(action string) error {
	if err := k.allowed(action); err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	return nil
}

// commit sends what has changed. message is a person's own words, summary what
// the manifest's template is filled with.
func (k *keeper) commit(ctx context.Context, message, summary string, out *control.EventResult) error {
	if err := k.allowed(policy.Commit); err != nil {
		if queued := k.copy.Status().Queued; queued > 0 {
			out.HeldBack += queued
			k.log.Warn("nothing is committed", "workspace", k.name, "changes", queued, "err", err)
		}
		return nil
	}
	o := cache.CommitOptions{}
	if message != "" {
		o.Message = spoken + message
	}
	k.begin(summary)
	report, err := k.copy.Commit(ctx, o)
	own := k.end()
	if report.Committed && own {
		k.emit(mountspec.EventCommitCompleted, map[string]string{"ref": string(report.Revision)})
	}
	k.committed(report, out)
	if err != nil {
		return fmt.Errorf("%s: commit: %w", k.name, err)
	}
	if report.Pushed {
		out.Pushed++
	}
	if report.PushError != nil {
		return fmt.Errorf("%s: push: %w", k.name, report.PushError)
	}
	return nil
}

// begin and end bracket a commit of this keeper's own. end reports whether
// nobody has told of it: a store that takes no sets has no commits to tell of.
func (k *keeper) begin(summary string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.summary, k.quiet = summary, true
}

func (k *keeper) end() (untold bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	untold = k.quiet
	k.summary, k.quiet = "", false
	return untold
}

// compose names a commit of files.
func (k *keeper) compose(files []string, count int) (c composed) {
	k.mu.Lock()
	v := mountspec.Vars{Operator: k.operator, Summary: k.summary, Workspace: k.name, Turn: k.turn, Conversation: k.talk,
		Files: files, Count: count, Date: k.now()}
	k.mu.Unlock()
	primary, more, _ := mountspec.Authors(k.r.Identity)
	if chosen, ok := k.identity(v.Operator); ok {
		primary, v.Operator = chosen, chosen.Name
	}
	if v.Operator == "" {
		v.Operator = primary.Name
	}
	for _, p := range more {
		if p.Email != "" {
			c.others = append(c.others, identity(p))
		}
	}
	if primary.Email != "" {
		c.author = identity(primary)
	}
	for _, t := range []providers.Trailer{{Name: "Wsmount-Turn", Value: v.Turn}, {Name: "Wsmount-Conversation", Value: v.Conversation}} {
		if t.Value != "" {
			c.trailers = append(c.trailers, t)
		}
	}
	c.message = k.template.Expand(v)
	return c
}

// sent is told of each commit that a store of revisions has taken. Who made it
// pushes it; those of the working copy itself are pushed by tryAgain.
func (k *keeper) sent(r providers.Revision) {
	k.mu.Lock()
	k.quiet, k.unlooked = false, true
	k.mu.Unlock()
	k.emit(mountspec.EventCommitCompleted, map[string]string{"ref": string(r)})
}

// arrived is told of each push. Of one of this keeper's own it is told when there
// is a pull request, too.
func (k *keeper) arrived(r providers.PushResult) {
	k.mu.Lock()
	held := k.held
	k.mu.Unlock()
	if held != nil {
		held.take(r)
		return
	}
	k.tellPush(r)
}

func (k *keeper) tellPush(r providers.PushResult) {
	payload := map[string]string{"ref": string(r.Revision)}
	if r.URL != "" {
		payload["prUrl"] = r.URL
	}
	k.emit(mountspec.EventPushCompleted, payload)
}

// emit tells the bus what the storage did. Nothing commits because of it.
func (k *keeper) emit(name mountspec.Trigger, payload map[string]string) {
	payload["storageId"] = k.name
	k.bus.Emit(lifecycle.Event{Name: string(name), Payload: payload,
		Source: lifecycle.Source{Kind: lifecycle.SourceStorage, ID: k.name}})
}

// fresh pulls in the background when the time to live is over and somebody has
// used the tree since, or when a pull that was put off can be done. operations
// counts the requests of the kernel.
func (k *keeper) fresh(operations uint64) {
	if k.sync.Mode != mountspec.ModePullPush {
		return
	}
	k.lookAgain()
	k.tryAgain()
	if k.sync.Pull.On.Resolve() == mountspec.EventManual {
		return
	}
	k.mu.Lock()
	stale := !k.inTurn && operations != k.used && k.now().Sub(k.lastPull) >= k.sync.Pull.TTL
	k.mu.Unlock()
	if !stale && !k.due() || k.ctx.Err() != nil {
		return
	}
	select {
	case k.busy <- struct{}{}:
	default:
		return // an event is being followed: soon again
	}
	k.mu.Lock()
	k.used, k.lastPull = operations, k.now() // whatever becomes of it
	k.mu.Unlock()
	go k.behind(func(ctx context.Context) error { return k.pull(ctx, &control.EventResult{}) })
}

// open follows workspace-open.
func (k *keeper) open() {
	k.busy <- struct{}{} // the first of all
	k.behind(func(ctx context.Context) error {
		k.follow(mountspec.EventWorkspaceOpen, nil)
		if !k.events {
			return nil
		}
		defer k.look()
		var out control.EventResult
		return errors.Join(k.rebranch(ctx, nil, &out), k.do(ctx, mountspec.EventWorkspaceOpen, nil, &out))
	})
}

// putOff says why a pull is owed, for status.
func (k *keeper) putOff() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owed
}

// leave ends what happens by itself.
func (k *keeper) leave() {
	for _, stop := range k.stop {
		stop()
	}
	k.cancel()
}

// finish follows workspace-close, the last event: it comes after the unmount, and
// before finishPush. The error says what policy wanted sent and is not.
func (k *keeper) finish(ctx context.Context) error {
	k.leave()
	select {
	case k.busy <- struct{}{}: // and keeps it: no event comes after this one
	case <-ctx.Done():
		k.noPush = true
		return fmt.Errorf("%s: an event was still being followed: %w", k.name, ctx.Err())
	}
	k.follow(mountspec.EventWorkspaceClose, nil)
	if !k.events {
		return nil
	}
	var out control.EventResult
	var errs []error
	if k.actions(mountspec.EventWorkspaceClose).commit {
		errs = append(errs, k.commit(ctx, "", "", &out))
	}
	if out.HeldBack > 0 && k.allowed(policy.Commit) == nil {
		errs = append(errs, k.heldBack())
	}
	return errors.Join(errs...)
}

// finishPush pushes what is owed when all is committed. What that finds to be in
// conflict is not safe either. The token stays taken.
func (k *keeper) finishPush(ctx context.Context) error {
	if !k.events || k.noPush || !k.actions(mountspec.EventWorkspaceClose).push && !k.owes(k.copy.Status().Unpushed) {
		return nil
	}
	before := k.copy.Status().HeldCount
	err := k.push(ctx, &control.EventResult{})
	if k.copy.Status().HeldCount > before && k.allowed(policy.Commit) == nil {
		err = errors.Join(err, k.heldBack())
	}
	return err
}

// heldBack says what a commit has left, and why.
func (k *keeper) heldBack() error {
	s := k.copy.Status()
	var names []string
	for _, h := range s.Held[:min(len(s.Held), 3)] {
		names = append(names, h.Path+" ("+h.Reason+")")
	}
	more := ""
	if s.HeldCount > len(names) {
		more = fmt.Sprintf(" and %d more", s.HeldCount-len(names))
	}
	return fmt.Errorf("%s: held back: %s%s", k.name, strings.Join(names, ", "), more)
}
