package cache

import (
	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/providers"
)

// Problems that are shown to a person: see package chores.
type (
	Problem  = chores.Problem
	Failing  = chores.Failure  // an activity in the background that fails
	Activity = chores.Activity // work in the background
)

// The activities whose owner is a caller of the volume: see Ended.
const (
	ActivityBranch      = chores.Branch
	ActivityPullRequest = chores.PullRequest
	ActivityCredentials = chores.Credentials
)

// Ended records the result of an activity that the caller does for this working copy: a failure is
// in Status until the activity has succeeded, and among its problems once for each reason.
func (v *Volume) Ended(a Activity, err error) { v.chores.Ended(a, err) }

// Answered records how the store answered a request: nil for an answer, an error if it refuses a
// request that a program may have made. As with Ended, a refusal is in Status until a request of
// that method was answered, and among its problems once for each reason.
func (v *Volume) Answered(m providers.Method, at providers.Locator, err error) {
	v.chores.Answered(Activity(m), at.String(), err)
}

func newChores(v *Volume) *chores.Record {
	return chores.New(chores.Options{Now: v.o.Now, Context: v.ctx, Halted: ErrMassDelete, Log: v.o.Log,
		Told: func(path string, err error) {
			if f, ok := v.notifier().(interface{ Failed(path string, err error) }); ok {
				f.Failed(path, err)
			}
		}})
}
