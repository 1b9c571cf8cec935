package daemon

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/awake"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// Subscribe listens on the bus of this mount.
func (d *Daemon) Subscribe(name string, handler func(lifecycle.Event)) (stop func()) {
	return d.bus.On(name, handler)
}

// Event emits an event for the control API, and waits until the parts have followed
// it. An event to the whole mount reaches every part, the deepest first; one to a
// path reaches the part that is mounted there. Local stores have nothing to pull,
// commit or push: each write is in the store already.
func (d *Daemon) Event(ctx context.Context, r control.EventRequest) (control.EventResult, error) {
	out := control.EventResult{Schema: control.EventSchema, Event: string(mountspec.Trigger(r.Name).Resolve())}
	reached, err := d.layout().reach(r.At)
	if err != nil {
		return out, err
	}
	e := lifecycle.Event{Name: r.Name, Payload: r.Vars,
		Source: lifecycle.Source{Kind: lifecycle.SourceSession, ID: cmp.Or(r.Vars["sessionId"], "wsmount-event")}}
	if err := lifecycle.Check(r.Name); err != nil {
		return out, err
	}
	d.bus.Emit(e)
	out.Parts = len(reached)
	if r.NoWait {
		go d.follow(d.drain, e, reached, &control.EventResult{})
		return out, nil
	}
	d.follow(ctx, e, reached, &out)
	d.shown(ctx)
	return out, nil
}

// follow has the parts follow an event, one after the other, and adds up the
// results. The failure of a part does not keep the others from it.
func (d *Daemon) follow(ctx context.Context, e lifecycle.Event, parts []*part, out *control.EventResult) {
	for _, p := range parts {
		if p.syncer == nil {
			continue
		}
		did, err := p.syncer.handle(ctx, e)
		out.Add(did)
		if err != nil {
			d.log.Error("an event could not be followed", "part", p.name, "event", e.Name, "err", err)
			p.syncer.failed(err, out)
		}
		out.Failing = append(out.Failing, p.tellFailing()...)
	}
	d.kick.raise()
}

// codes are the exit codes of a working copy's errors.
var codes = []struct {
	err  error
	code exit.Code
}{
	{cache.ErrMassDelete, exit.Unsafe}, {errNotGranted, exit.Denied}, {errNoPulls, exit.Denied},
	{providers.ErrUnauthenticated, exit.Denied}, {providers.ErrPermission, exit.Denied},
	{providers.ErrConflict, exit.Conflict}, {providers.ErrUnavailable, exit.Unreachable},
	{context.DeadlineExceeded, exit.Unreachable}, {fs.ErrUnavailable, exit.Unreachable}, {cache.ErrNoVersion, exit.Unresolvable},
	{cache.ErrNotKept, exit.Unresolvable}, {cache.ErrTooLarge, exit.Conflict}, {cache.ErrNoConflict, exit.Unresolvable},
	{providers.ErrNotExist, exit.Unresolvable},
}

// failed adds the failures of a workspace to a result, one text for each joined error.
func (k *syncer) failed(err error, out *control.EventResult) {
	for _, e := range each(err) {
		hint := ""
		switch {
		case errors.Is(e, providers.ErrUnauthenticated):
			hint = checkSecret(k.name)
		case errors.Is(e, providers.ErrCorrupt):
			hint = "`wsmount doctor " + k.name + "` says what is damaged; `wsmount recover export " + k.name + " DIR` copies what can be read, once it is not mounted"
		}
		out.Fail(k.name+": "+e.Error(), int(codeOf(e)), hint)
	}
}

// each returns the errors that errors.Join has joined, or err alone.
func each(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, each(e)...)
	}
	return all
}

func codeOf(err error) exit.Code {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	var unsaved *cache.UnsavedError
	if errors.As(err, &unsaved) {
		return exit.Unsafe
	}
	return exit.Failed
}

// openLimit is how long a mount waits for its first pull, which goes on after that.
const openLimit = 5 * time.Second

// opened emits workspace-open and follows it. A store that does not answer does not
// keep an existing working copy from being mounted.
func (d *Daemon) opened() {
	d.bus.Emit(d.hostEvent("workspace-open"))
	var wg sync.WaitGroup
	for _, k := range d.syncers {
		k.copy.startPinner()
		wg.Go(func() {
			k.open()
			k.arm()
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	if _, answered := awake.Within(openLimit, done); answered {
		return
	}
	d.log.Warn("the store has not answered yet; what was known of it is shown")
	for _, k := range d.syncers {
		if k.arm() {
			k.unreachable(errLate)
		}
	}
}

// freshen tells every syncer how many requests the kernel has sent.
func (d *Daemon) freshen() {
	if len(d.syncers) == 0 {
		return
	}
	var used uint64
	for _, op := range d.server.Stats().Ops {
		used += op.Count
	}
	for _, k := range d.syncers {
		k.tick(used)
	}
}

// shown waits until the kernel was notified of changes, so that the caller sees them. It waits for
// a second at most: reads from slow storage may delay the notification.
func (d *Daemon) shown(ctx context.Context) {
	if d.server == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told := make(chan struct{})
	go func() { d.server.Told(ctx); close(told) }()
	awake.Within(time.Second, told)
}

func (d *Daemon) hostEvent(name string) lifecycle.Event {
	return lifecycle.Event{Name: name, Source: lifecycle.Source{Kind: lifecycle.SourceHost, ID: "wsmount"},
		Payload: map[string]string{"workspaceId": d.tree.Name}}
}
