package cache

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/providers"
)

// Problem is something about the working copy that a person should know of.
type Problem struct {
	Time time.Time
	Op   string
	Path string // where it was
	Err  error
}

// maxProblems bounds what Status remembers; the log has all.
const maxProblems = 200

// report keeps a failure, or what nobody would expect, for status and log.
func (v *Volume) report(op, path string, err error) {
	v.o.Log.Error("the backend and the working copy differ, or will", "op", op, "path", path, "err", err)
	v.remember(op, path, err)
}

// remember is report without the log.
func (v *Volume) remember(op, path string, err error) {
	locked := v.lock()
	if len(locked.problems) == maxProblems {
		locked.problems = slices.Delete(locked.problems, 0, 1)
	}
	locked.problems = append(locked.problems, Problem{v.o.Now(), op, path, err})
	notify := v.notifier()
	locked.unlock()
	if f, ok := notify.(interface{ Failed(path string, err error) }); ok {
		f.Failed(path, err)
	}
}

// Failing is an activity in the background that fails.
type Failing = chores.Failure

// Activity names work in the background.
type Activity = chores.Activity

// The activities of which a caller of the volume is the owner: see Ended.
const (
	ActivityBranch      = chores.Branch
	ActivityPullRequest = chores.PullRequest
	ActivityCredentials = chores.Credentials
)

// Ended notes what became of an activity that the caller does for this working copy:
// a failure is in Status until the activity has succeeded, and among its problems
// once for each reason. What was broken off has neither failed nor succeeded, nor has
// what is halted. It waits for nothing but a change of the table.
func (v *Volume) Ended(a Activity, err error) {
	if v.fails(a, err) {
		v.o.Log.Warn("work in the background fails", "activity", a, "err", err)
		v.remember(string(a), "", err)
	}
}

// fails is Ended without a word. news says that it is to be told. The lock may be held.
func (v *Volume) fails(a Activity, err error) (news bool) {
	if err == nil {
		v.failing.Succeeded(a)
		return false
	}
	return !v.brokenOff(err) && !errors.Is(err, ErrMassDelete) && v.failing.Failed(a, err)
}

// brokenOff reports whether an error says that work ended before it had a result, to
// be done again.
func (v *Volume) brokenOff(err error) bool {
	return v.ctx.Err() != nil || errors.Is(err, context.Canceled) && !errors.Is(err, providers.ErrUnavailable)
}

// failures are the activities that fail. Nothing goes to the backend when there is
// nothing to send.
func (v *View) failures() []Failing {
	if v.table.DirtyCount() == 0 {
		v.failing.Succeeded(chores.Upload)
		v.failing.Succeeded(chores.Commit)
	}
	return v.failing.Failures()
}
