package main

import (
	"context"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
)

// settleLimit is how long a daemon with nothing to send may take to end before it
// is asked what keeps it.
const settleLimit = 300 * time.Millisecond

// waitUntilSent returns when the daemon of a mount has ended. As long as it
// sends something within the limit, or comes further with it, it may go on. One
// that lives on because of other mount namespaces is not waited for when it has
// nothing to send, and who has these is the result; nor when it may not send.
func waitUntilSent(ctx context.Context, r *state.Record, limit time.Duration) ([]mountpoint.Holder, error) {
	if endsWithin(ctx, r, min(limit, settleLimit)) == nil {
		return nil, nil
	}
	beat := beatOf(ctx, r)
	last, known := mounts.Ask(ctx, r) // what it still has to send, and whose mount namespaces keep it
	for waited := false; ; waited = true {
		if known && len(last.HeldBy) > 0 {
			halt := commitHalt(last)
			kept := exit.New(exit.Unsafe, "%s is unmounted, but another mount namespace still has it, and not all is sent", r.Mountpoint)
			switch {
			case statustext.AllSent(last):
				return last.HeldBy, nil
			case halt != "":
				return nil, kept.Hint("%s: end %s, mount the workspace again and allow it with `wsmount commit --confirm %s`",
					halt, mountpoint.Names(last.HeldBy), r.Mountpoint)
			case waited:
				return nil, kept.Hint("end %s; then what can be sent is", mountpoint.Names(last.HeldBy))
			}
		}
		turn, cancel := context.WithTimeout(ctx, limit)
		err := waitForEnd(turn, r)
		cancel()
		if err == nil || ctx.Err() != nil {
			return nil, err
		}
		now, answers := mounts.Ask(ctx, r)
		was := beat
		beat = beatOf(ctx, r)
		if !answers || len(now.HeldBy) == 0 && known && statustext.Unsent(now) >= statustext.Unsent(last) && beat == was {
			return nil, err
		}
		last, known = now, true
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

// beatOf asks a daemon for the beat of what it does; 0 from one that does not say.
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
			return exit.New(exit.Unsafe, "%s is unmounted, but its daemon (pid %d) has not ended yet", r.Mountpoint, r.PID).
				Hint("wait for it; its log is %s", orNothing(r.Log, "in the journal"))
		case <-tick.C:
		}
	}
	return nil
}
