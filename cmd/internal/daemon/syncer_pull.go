package daemon

import (
	"context"
	"fmt"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/mountspec"
)

// pull asks the remote, and leaves a working copy with changes alone.
func (k *syncer) pull(ctx context.Context, out *control.EventResult) error {
	k.report.emit(mountspec.EventPullStarted, map[string]string{"provider": k.r.Storage.Provider})
	before := k.state()
	report, err := k.copy.Pull(ctx, cache.PullOptions{IfClean: k.sync.Mode == mountspec.ModePullPush})
	if err != nil {
		k.report.emit(mountspec.EventPullFailed, map[string]string{"error": err.Error()})
		return fmt.Errorf("%s: pull: %w", k.name, err)
	}
	k.freshness.pulled(k.now(), report.Skipped)
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
	// What was committed and not pushed may have become changes on top of what
	// others have pushed.
	return k.follow(ctx, syncpolicy.Event{Kind: syncpolicy.TookBack}, words{}, out)
}
