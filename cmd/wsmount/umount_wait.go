package main

import (
	"context"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// settleLimit is how long a daemon with nothing to send may take to end before it
// is asked what keeps it.
const settleLimit = 300 * time.Millisecond

// waitUntilSent returns when the daemon of a mount has ended. As long as it
// sends something within the limit, or comes further with it, it may go on. One that has nothing to send
// and lives on only because of other mount namespaces is not waited for: who has
// these is the result.
func waitUntilSent(ctx context.Context, r *state.Record, limit time.Duration) ([]mountpoint.Holder, error) {
	if endsWithin(ctx, r, min(limit, settleLimit)) == nil {
		return nil, nil
	}
	beat := beatOf(ctx, r)
	for left, held, known := unsentBy(ctx, r); ; {
		if known && left == 0 && len(held) > 0 {
			return held, nil
		}
		turn, cancel := context.WithTimeout(ctx, limit)
		err := waitForEnd(turn, r)
		cancel()
		if err == nil || ctx.Err() != nil {
			return nil, err
		}
		now, by, answers := unsentBy(ctx, r)
		if len(by) > 0 && now > 0 {
			return nil, exit.New(exit.Unsafe, "%s is unmounted, but another mount namespace still has it, and not all is sent", r.Mountpoint).
				Hint("end %s; then all is sent", mountpoint.Names(by))
		}
		was := beat
		beat = beatOf(ctx, r)
		if !answers || len(by) == 0 && known && now >= left && beat == was {
			return nil, err
		}
		left, held, known = now, by, true
	}
}

// unsentBy asks a daemon how much it still has to send, and whose mount
// namespaces keep it.
func unsentBy(ctx context.Context, r *state.Record) (n int, held []mountpoint.Holder, answers bool) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	s, err := control.NewClient(r.SocketPath()).Status(ctx)
	return unsentIn(s), s.HeldBy, err == nil
}

// beatOf asks a daemon for the beat of what it does; 0 from one that does not say.
func beatOf(ctx context.Context, r *state.Record) uint64 {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	work, _ := control.NewClient(r.SocketPath()).Work(ctx)
	return work.Beat
}

// unsentIn counts what a mount still has to send.
func unsentIn(s control.Status) int {
	n := int(s.UnsavedBytes)
	for _, p := range s.Parts {
		n += p.Unsaved.Names
		if p.Copy != nil {
			for _, t := range p.Copy.InFlight {
				n -= int(t.Sent)
			}
		}
	}
	return n
}

// waitForEnd returns when the daemon of a mount has ended.
func waitForEnd(ctx context.Context, r *state.Record) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.Alive() {
		select {
		case <-ctx.Done():
			return exit.New(exit.Unsafe, "%s is unmounted, but its daemon (pid %d) has not ended yet", r.Mountpoint, r.PID).
				Hint("wait for it; its log is %s", orNothing(r.Log, "in the journal"))
		case <-tick.C:
		}
	}
	return nil
}
