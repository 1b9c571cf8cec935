package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers"
)

// syncer applies the sync block of one workspace to its working copy: which
// event pulls, commits and pushes, and as whom (AIP-35, "Sync"; AIP-37).
//
// Nothing is pulled between turn-start and turn-end unless the manifest names
// an event inside the turn. A pull asks the remote but leaves a working copy
// alone that has changes; it is tried again when they are committed. What the
// storage itself emits may push and pull, and never commits.
type syncer struct {
	name   string // of the workspace
	r      *host.Resolved
	sync   mountspec.Sync
	events bool // the sync block counts: pull-push, or canonical with write-back
	copy   *workingCopy

	readOnly bool
	syncerOptions

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
	quiet    bool   // a commit or push of this syncer's own is under way
	later    *time.Timer
	giveWay  func() // ends a pull in the background

	pushRetry, pullRetry retry              // what failed in the background
	branches             providers.Branches // when they were last looked at
	unlooked             bool               // something was committed since
	held                 *heldPush          // a push of this syncer's own is under way
}

// syncerOptions are what a syncer shares with its daemon.
type syncerOptions struct {
	bus      *lifecycle.Bus
	log      *slog.Logger
	audit    *audit.Log
	now      func() time.Time
	identity func(ref string) (mountspec.IdentityEntry, bool) // of the host configuration
}

func newKeeper(r *host.Resolved, w *workingCopy, o syncerOptions) (*syncer, error) {
	k := &syncer{name: r.Address.String(), r: r, sync: r.Storage.Sync, copy: w, syncerOptions: o, busy: make(chan struct{}, 1), readOnly: w.readOnly}
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
func (k *syncer) listen() {
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
func (k *syncer) afterwards(e lifecycle.Event) {
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
func (k *syncer) take(ctx context.Context) error {
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
func (k *syncer) behind(f func(ctx context.Context) error) {
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

func (k *syncer) give() { <-k.busy }

// handle does what an event asks of this workspace, and waits for it.
func (k *syncer) handle(ctx context.Context, e lifecycle.Event) (out control.EventResult, err error) {
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
func (k *syncer) do(ctx context.Context, name mountspec.Trigger, vars map[string]string, out *control.EventResult) error {
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
func (k *syncer) follow(name mountspec.Trigger, vars map[string]string) {
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
func (k *syncer) ended(name mountspec.Trigger) {
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
func (k *syncer) act(event string) {
	k.copy.SetActor(cache.Actor{Name: k.operator, Event: event, Turn: k.turn, Conversation: k.talk})
}

// actions are what an event asks of the working copy now.
func (k *syncer) actions(e mountspec.Trigger) actions {
	k.mu.Lock()
	defer k.mu.Unlock()
	return actionsFor(k.sync, e, syncState{readOnly: k.readOnly, inTurn: k.inTurn})
}

// pushesCommits reports whether each commit is pushed.
func (k *syncer) pushesCommits() bool {
	return actionsFor(k.sync, mountspec.EventCommitCompleted, syncState{readOnly: k.readOnly}).push
}

// allowed asks the policy now, since grants end (AIP-38).
func (k *syncer) allowed(action string) error {
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
func (k *syncer) granted(action string) error {
	if err := k.allowed(action); err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	return nil
}

// arrived is told of each push. Of one of this syncer's own it is told when there
// is a pull request, too.
func (k *syncer) arrived(r providers.PushResult) {
	k.mu.Lock()
	held := k.held
	k.mu.Unlock()
	if held != nil {
		held.take(r)
		return
	}
	k.tellPush(r)
}

func (k *syncer) tellPush(r providers.PushResult) {
	payload := map[string]string{"ref": string(r.Revision)}
	if r.URL != "" {
		payload["prUrl"] = r.URL
	}
	k.emit(mountspec.EventPushCompleted, payload)
}

// emit tells the bus what the storage did. Nothing commits because of it.
func (k *syncer) emit(name mountspec.Trigger, payload map[string]string) {
	payload["storageId"] = k.name
	k.bus.Emit(lifecycle.Event{Name: string(name), Payload: payload,
		Source: lifecycle.Source{Kind: lifecycle.SourceStorage, ID: k.name}})
}
