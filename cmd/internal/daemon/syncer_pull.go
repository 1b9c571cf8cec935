package daemon

import (
	"context"
	"fmt"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec"
)

// due reports whether a pull that was put off can be done now.
func (k *syncer) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owed != "" && !k.inTurn && k.copy.Status().Queued == 0
}

// owe notes why a pull is put off.
func (k *syncer) owe(reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owed = reason
}

// pull asks the remote, and leaves a working copy with changes alone.
func (k *syncer) pull(ctx context.Context, out *control.EventResult) error {
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

// fresh pulls in the background when the time to live is over and somebody has
// used the tree since, or when a pull that was put off can be done. operations
// counts the requests of the kernel.
func (k *syncer) fresh(operations uint64) {
	if k.sync.Mode != mountspec.ModePullPush {
		return
	}
	k.lookAgain()
	k.retryDue()
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

// putOff says why a pull is owed, for status.
func (k *syncer) putOff() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owed
}
