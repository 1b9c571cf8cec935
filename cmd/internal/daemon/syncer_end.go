package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// open follows workspace-open.
func (k *syncer) open() {
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

// leave ends what happens by itself.
func (k *syncer) leave() {
	for _, stop := range k.stop {
		stop()
	}
	k.cancel()
}

// finish follows workspace-close, the last event: it comes after the unmount, and
// before finishPush. The error says what policy wanted sent and is not.
func (k *syncer) finish(ctx context.Context) error {
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
func (k *syncer) finishPush(ctx context.Context) error {
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
