package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// pull pulls from the remote; it skips a working copy with changes.
func (k *syncer) pull(ctx context.Context, out *control.EventResult) error {
	k.report.emit(mountspec.EventPullStarted, map[string]string{"provider": k.r.Storage.Provider})
	before, began := k.state(), k.now()
	report, err := k.copy.Pull(ctx, cache.PullOptions{IfClean: k.sync.Mode == mountspec.ModePullPush})
	if err == nil || ctx.Err() == nil { // else it was canceled, and is made again soon
		k.note(began, report, err)
	}
	if err != nil {
		k.report.emit(mountspec.EventPullFailed, map[string]string{"error": err.Error()})
		return fmt.Errorf("pull: %w", err)
	}
	if report.Skipped != "" {
		k.log.Info("a pull is put off", "workspace", k.name, "reason", report.Skipped)
		k.report.emit(mountspec.EventPullFailed, map[string]string{"error": "put off: " + report.Skipped})
		out.PutOff = append(out.PutOff, k.name+": "+report.Skipped)
		return nil
	}
	k.report.pulled(report, out)
	k.report.emit(mountspec.EventPullCompleted, map[string]string{"ref": string(report.Revision)})
	if before.Dirty || !before.Unpushed {
		return nil
	}
	// Unpushed commits may have become changes on top of the commits that others pushed.
	return k.follow(ctx, syncpolicy.Event{Kind: syncpolicy.TookBack}, words{}, out)
}

// note notes the result of a pull for later looks at the tree. A halted pull counts as answered.
func (k *syncer) note(began time.Time, report cache.PullReport, err error) {
	switch {
	case report.Skipped == cache.SkippedDirty:
		k.freshness.Skipped(began, report.Skipped)
	case err == nil, errors.Is(err, cache.ErrMassDelete):
		k.retries.fetched(nil)
		if k.freshness.Answered(began) {
			k.log.Info("the remote answers again", "workspace", k.name)
		}
	case k.sync.Mode == mountspec.ModePullPush: // else no pull follows by itself: looks ask the store
		k.unreachable(err)
	}
}

// unreachable makes looks not wait for the remote until it has answered, and logs that once.
func (k *syncer) unreachable(err error) {
	k.retries.fetched(err)
	if k.freshness.Failed(err) {
		k.log.Warn("the remote cannot be asked: what was last pulled is shown", "workspace", k.name, "err", err)
	}
}

// errLate says that a pull takes longer than a program or a mount waits for it.
var errLate = providers.Kinded(errors.New("the remote has not answered in time"), fs.ErrUnavailable)

// renew pulls because a program looks at the tree after the TTL. An event that is
// being followed comes first, and may bring the state that the look waits for.
func (k *syncer) renew() {
	if len(k.looked()) == 0 || k.gate.join() != nil {
		k.freshness.Hold()
		return
	}
	list := k.looked()
	if len(list) == 0 {
		k.freshness.Hold()
		k.gate.give()
		return
	}
	k.behind(list)
}

func (k *syncer) looked() []syncpolicy.Action {
	state := k.state()
	state.Age, _ = k.freshness.Age(0)
	return syncpolicy.Actions(k.sync, syncpolicy.Event{Kind: syncpolicy.Looked}, state)
}

// arm has looks wait for pulls from now on. first says that they did not before.
func (k *syncer) arm() (first bool) {
	return syncpolicy.LooksPull(k.sync) && k.freshness.Arm(k.renew)
}
