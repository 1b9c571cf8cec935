package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// What fails in the background is in the status with its reason until it has
// succeeded again, and what does not pass by itself among the problems, too.
func TestBackgroundFailures(t *testing.T) {
	pull := func(w *world) error { _, err := w.v.Pull(w.Context(), PullOptions{}); return err }
	commit := func(w *world) error { _, err := w.v.Commit(w.Context(), CommitOptions{}); return err }
	for _, tt := range []struct {
		activity Activity
		method   providers.Method // fails once
		fault    error
		start    func(*world, *Options)
		first    string // what is done before
		do       func(*world) error
		waits    bool // do goes on until it has succeeded
		told     int
	}{
		{"pull", providers.MethodFetch, providers.ErrUnauthenticated, unwaited, "", pull, false, 1},
		{"push", providers.MethodPush, providers.ErrPermission, unwaited, "put b 1", (*world).push, false, 1},
		{"commit", providers.MethodCommit, providers.ErrUnavailable, unwaited, "", func(w *world) error { w.do("put b 1"); return commit(w) }, true, 0},
		{"upload", providers.MethodWrite, providers.ErrUnavailable, background, "", func(w *world) error { w.do("put b 1"); return nil }, true, 0},
	} {
		t.Run(string(tt.activity), func(t *testing.T) {
			pauses := newManual()
			held := func(_ *world, o *Options) { o.pause = pauses.pause }
			store := remoteWith(memoryrepo.NewRemote(nil), "a", "A")
			if tt.activity == "upload" {
				store = holding("a", "A")
			}
			w := newWorld(t, store, tt.start, held)
			if tt.first != "" {
				w.do(tt.first)
				w.upload()
			}
			w.faults.Queue(tt.method, providertest.Fault{Before: tt.fault})
			done := async(func() {
				assert.Equal(t, tt.do(w) == nil, tt.waits)
			})
			if !tt.waits {
				<-done
			}
			is := func(activities ...Activity) bool {
				failing := w.v.Status().Failing
				if len(failing) == 0 || len(activities) == 0 {
					return len(failing) == len(activities)
				}
				f := failing[0]
				return f.Activity == activities[0] && f.Times == 1 && !f.Since.IsZero() && f.Err != nil && len(failing) == 1
			}
			w.until(func() bool { return is(tt.activity) })
			p := w.v.Status().Problems
			assert.True(t, len(p) == tt.told && (tt.told == 0 || p[0].Op == string(tt.activity)), "problems: got", p, "want", tt.told)
			close(pauses.ends)
			if <-done; !tt.waits {
				w.ok(tt.do(w))
			}
			w.until(func() bool { return is() })
		})
	}
}

// failsOnce is a store whose freeing of uploads fails the first time.
type failsOnce struct {
	providers.Multiparter
	calls int
}

func (f *failsOnce) AbortParts(context.Context, time.Time) (int, error) {
	if f.calls++; f.calls == 1 {
		return 0, providers.ErrPermission
	}
	return 0, nil
}

// Uploads that nobody completes are freed once a day; until that has succeeded again, it
// is in the status.
func TestFailureToFreeParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newScene(t)
		w.v.work.Go(func() { w.v.freeParts(&failsOnce{}, 0) })
		synctest.Wait()
		f := w.v.Status().Failing
		assert.True(t, len(f) == 1 && f[0].Activity == chores.Parts && errors.Is(f[0].Err, providers.ErrPermission), "failing", f)
		time.Sleep(partsLeft + time.Second)
		synctest.Wait()
		assert.Equal(t, len(w.v.Status().Failing), 0, "after a success")
	})
}

// A pull that a store without revisions refuses was asked for by a person, whom its error tells: none
// follows by itself, which would end what status says.
func TestFailedPullIsNoWorkOfItsOwn(t *testing.T) {
	w := newWorld(t, holding("a", "A"))
	w.list("") // a pull asks for what is known
	w.intercept(func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
		if call.Method == providers.MethodList {
			return providers.ErrPermission
		}
		return next(ctx)
	})
	assert.Is(t, assert.ErrOf(w.v.Pull(t.Context(), PullOptions{})), providers.ErrPermission)
	assert.Equal(t, len(w.v.Status().Failing), 0, "failing")
}

// A branch that cannot be moved to is in the status until it can.
func TestFailureToBranch(t *testing.T) {
	c := newBranched(t)
	refuses := true
	c.intercept(func(ctx context.Context, call *providers.Call, next func(context.Context) error) error {
		if refuses && call.Method == providers.MethodBranches {
			return providers.ErrUnauthenticated
		}
		return next(ctx)
	})
	for _, refuses = range []bool{true, false} {
		assert.Equal(t, assert.ErrOf(c.v.Branch(t.Context(), "turn-1", BranchOptions{})) != nil, refuses, "it failed")
		f := c.v.Status().Failing
		assert.Equal(t, len(f) == 1 && f[0].Activity == ActivityBranch, refuses, "failing is", f)
	}
}

// A failure of work that is not the volume's own is kept with the volume's, and
// told once for each reason. Work that was broken off has not failed.
func TestEnded(t *testing.T) {
	w := newWorld(t)
	for i, err := range []error{fmt.Errorf("pull: %w", context.Canceled), providers.ErrPermission, providers.ErrPermission, providers.ErrQuota, ErrMassDelete} {
		w.v.Ended(ActivityPullRequest, err)
		s := w.v.Status()
		assert.Equal(t, fmt.Sprint(len(s.Failing), len(s.Problems)), []string{"0 0", "1 1", "1 1", "1 2", "1 2"}[i], err)
	}
	w.v.Ended(ActivityPullRequest, nil)
	assert.Equal(t, len(w.v.Status().Failing), 0, "after a success")
}

// A store that refuses the credentials is not said to be out of reach, though programs
// get the same error.
func TestRefusedAccessIsSaid(t *testing.T) {
	for method, store := range map[providers.Method]func(*world, *Options){
		providers.MethodList: func(*world, *Options) {}, providers.MethodFetch: repository,
	} {
		w := newWorld(t, store, has("a", "1"))
		w.local() // the root is known
		w.faults.Queue(method, providertest.Fault{Before: providers.ErrUnauthenticated})
		_, err := w.v.Pull(t.Context(), PullOptions{})
		w.is(err, fs.ErrUnavailable)
		assert.Equal(t, err.Error(), providers.ErrUnauthenticated.Error(), method)
	}
}
