package unmount

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
)

// settleLimit is how long a daemon with nothing to send may take to end before
// it is asked for the reason.
const settleLimit = 300 * time.Millisecond

// askAgain is how often a daemon is asked whether other mount namespaces keep it: it does not
// know while it still sends.
const askAgain = time.Second

// AsLongAsItTries is the limit if the caller gives none: that of the daemon, after which it
// reports why some changes are not sent, and endLimit for its end.
const (
	AsLongAsItTries time.Duration = -1
	endLimit                      = 10 * time.Second
)

// within is the limit as a duration, for a daemon with status s. The daemon closes its parts
// one after the other, and each of them tries its store.
func within(limit time.Duration, s control.Status) time.Duration {
	if limit != AsLongAsItTries {
		return limit
	}
	tries := time.Duration(0)
	for _, p := range s.Parts {
		if p.Copy != nil && (p.Unsaved.Names > 0 || p.Copy.Unpushed) {
			tries += time.Duration(p.Copy.Patience * float64(time.Second))
		}
	}
	return max(tries, cache.DefaultPatience) + endLimit
}

// Wait returns when the daemon of a mount has ended. As long as it sends
// something within the limit, or makes progress with it, it may go on. A daemon
// that lives on because of other mount namespaces is not waited for if it has
// nothing to send, and the holders of these are the result; nor if it may not send.
// The end of the context does not end the daemon.
func Wait(ctx context.Context, r *state.Record, limit time.Duration) ([]mountpoint.Holder, error) {
	settle := settleLimit
	if limit != AsLongAsItTries {
		settle = min(limit, settle)
	}
	if endsWithin(ctx, r, settle) == nil {
		return nil, nil
	}
	return detached{
		at:   r.Mountpoint,
		ends: func(ctx context.Context) error { return waitForEnd(ctx, r) },
		ask:  func(ctx context.Context) (control.Status, bool) { return mounts.Ask(ctx, r) },
		beat: func(ctx context.Context) uint64 { return beatOf(ctx, r) },
		late: func(s control.Status, known bool) error {
			if !known {
				s, _ = LastStatus(r)
			}
			return notEnded(r, s)
		},
	}.wait(ctx, limit)
}

// A detached is the daemon of an unmounted mount, as seen by the caller that waits for it.
type detached struct {
	at   string                                            // the mount point
	ends func(context.Context) error                       // nil: the daemon has ended; else the context has
	ask  func(context.Context) (s control.Status, ok bool) // false: it does not answer
	beat func(context.Context) uint64                      // of its work
	late func(s control.Status, known bool) error          // the error that it has not ended
}

// wait is Wait for a daemon that has not ended at once.
func (d detached) wait(ctx context.Context, limit time.Duration) ([]mountpoint.Holder, error) {
	begun, waited := time.Now(), false
	beat := d.beat(ctx)
	last, known := d.ask(ctx) // its unsent changes when the limit began
	over := begun.Add(within(limit, last))
	for now, answers := last, known; ; {
		if answers && len(now.HeldBy) > 0 {
			halt := commitHalt(now)
			kept := exit.New(exit.Unsafe, "%s is unmounted, but another mount namespace still has it, and not all is sent", d.at)
			switch {
			case statustext.AllSent(now):
				return now.HeldBy, nil
			case halt != "":
				return nil, kept.Hint("%s: end %s, mount the workspace again and allow it with `wsmount commit --confirm %s`",
					halt, mountpoint.Names(now.HeldBy), d.at)
			case waited:
				return nil, kept.Hint("end %s; then what can be sent is", mountpoint.Names(now.HeldBy))
			}
		}
		turn, cancel := context.WithTimeout(ctx, min(askAgain, time.Until(over)))
		err := d.ends(turn)
		cancel()
		switch {
		case err == nil:
			return nil, nil
		case ctx.Err() != nil:
			return nil, exit.New(exit.Failed, "interrupted: %s is unmounted, and its daemon goes on until all that may be sent is", d.at).
				Hint("`wsmount umount %s` waits for it again, `wsmount status %s` shows how far it is", d.at, d.at)
		}
		if now, answers = d.ask(ctx); time.Now().Before(over) {
			continue
		}
		was := beat
		beat = d.beat(ctx)
		if !answers || len(now.HeldBy) == 0 && known && statustext.Unsent(now) >= statustext.Unsent(last) && beat == was {
			return nil, d.late(now, answers)
		}
		last, known, waited, over = now, true, true, time.Now().Add(within(limit, now))
	}
}

// commitHalt says which commit of a mount waits for --confirm; "": none.
func commitHalt(s control.Status) string {
	for _, p := range s.Parts {
		if p.Copy == nil {
			continue
		}
		for _, text := range p.Copy.Halted {
			if strings.HasPrefix(text, control.HaltedCommit) {
				return text
			}
		}
	}
	return ""
}

// beatOf asks a daemon for the beat of its work; 0 if it does not answer.
func beatOf(ctx context.Context, r *state.Record) uint64 {
	work, _ := control.NewClient(r.SocketPath()).Work(ctx)
	return work.Beat
}

// waitForEnd returns when the daemon of a mount has ended.
func waitForEnd(ctx context.Context, r *state.Record) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.Alive() {
		select {
		case <-ctx.Done():
			s, _ := LastStatus(r)
			return notEnded(r, s)
		case <-tick.C:
		}
	}
	return nil
}

// notEnded is the error if the wait for a daemon is given up: the unsent changes, and the
// reasons, as far as its status has them.
func notEnded(r *state.Record, s control.Status) error {
	e := exit.New(exit.Unsafe, "%s is unmounted, but its daemon (pid %d) has not ended yet", r.Mountpoint, r.PID)
	if e.Details = statustext.Left(s); len(e.Details) == 0 {
		return e.Hint("wait for it; its log is %s", cmp.Or(r.Log, "in the journal"))
	}
	return e.Hint("`wsmount umount %s` waits for it again; what it has not sent at its end `wsmount recover upload %s` sends", r.Mountpoint, r.Workspace)
}
