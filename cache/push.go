package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// Push sends what was committed to where others see it. What others pushed
// before comes here first (Pull), and what they left unchanged is committed on
// top. A backend without a remote has nothing to push. It fails when the remote
// cannot be reached for Options.Patience; that it is owed since, and why, is in
// Status.
func (v *Volume) Push(ctx context.Context, o providers.PushOptions) (result providers.PushResult, err error) {
	err = v.owe(nil)
	if err == nil {
		result, err = v.pushOnce(ctx, o)
	}
	if err != nil {
		v.notPushed(err)
		err = fmt.Errorf("cache: push: %w", err)
	}
	return result, err
}

func (v *Volume) pushOnce(ctx context.Context, o providers.PushOptions) (result providers.PushResult, err error) {
	pusher, ok := providers.As[providers.Pusher](v.p)
	if !ok {
		return result, nil
	}
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	stop := context.AfterFunc(ctx, func() { w.end(context.Cause(ctx)) })
	defer stop()
	for try := 0; ; try++ {
		err = v.retry(w, func(ctx context.Context) (err error) {
			result, err = pusher.Push(ctx, o)
			return err
		})
		switch {
		case err == nil:
			return result, v.pushed(w, result)
		case errors.Is(err, providers.ErrNotExist): // there is no revision yet
			return result, nil
		case !errors.Is(err, providers.ErrConflict) || o.Lease != "" || try >= maxTries:
			return result, silence(w.cause(err))
		}
		w.moved()
		if err := v.catchUp(w); err != nil {
			return result, err
		}
	}
}

// silence says of time that was over, and of nothing else, whose silence took it.
func silence(err error) error {
	late := errors.Is(err, errPatience) || errors.Is(err, context.DeadlineExceeded)
	if !late || errors.Is(err, providers.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("the remote has not answered: %w: %w", providers.ErrUnavailable, err)
}

// catchUp brings what others pushed, and puts ours on top: commits that were made
// anew are there, what became changes again is committed.
func (v *Volume) catchUp(ctx context.Context) error {
	if _, err := v.Pull(ctx, PullOptions{}); err != nil {
		return err
	}
	v.mu.Lock()
	u := v.unpushedOf()
	v.mu.Unlock()
	if v.engine.sets == nil || u != nil && u.Commits > 0 {
		return nil
	}
	_, err := v.Commit(ctx, CommitOptions{})
	return err
}

func (v *Volume) pushed(ctx context.Context, result providers.PushResult) error {
	if result.Pushed && result.Revision != "" {
		if err := v.setUpstream(ctx, result.Revision); err != nil {
			return err
		}
	}
	return v.update(func() error {
		v.engine.pushTold = ""
		v.table.Set(keyMerging, nil)
		return v.setUnpushed(nil)
	})
}

// push is Push in the background, after a commit.
func (e *engine) push() {
	e.v.mu.Lock()
	defer e.v.mu.Unlock()
	if e.pushing || e.v.closed {
		return
	}
	e.pushing = true
	e.v.background(func() {
		_, _ = e.v.Push(e.v.ctx, providers.PushOptions{}) // Status says what became of it
		e.v.mu.Lock()
		e.pushing = false
		e.v.mu.Unlock()
	})
}
