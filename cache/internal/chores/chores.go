// Package chores keeps what fails in the background of a working copy: work that
// no program waits for, so that no error of a system call tells of it.
//
// It knows activities by name and their last errors. It knows nothing of what they
// do, and tries nothing again.
//
//	r := chores.New(time.Now)
//	if r.Ended(chores.Pull, pull()) { ... } // news: tell of it
//	r.Failures()                                // what fails now
//
// # What it promises
//
// A failure is kept until the same activity has succeeded. All methods may be called
// at the same time, and wait for nothing.
package chores

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// An Activity is work of one kind, which its owner does again and again.
type Activity string

// The activities of a working copy, and of what keeps it.
const (
	Pull        Activity = "pull"         // what others have changed comes here
	Push        Activity = "push"         // commits go to where others see them
	Commit      Activity = "commit"       // changes go to the store as one set
	Upload      Activity = "upload"       // changes go to the store one by one
	Branch      Activity = "branch"       // commits go to the branch that policy wants
	PullRequest Activity = "pull request" // it is opened for a branch that was pushed
	Keep        Activity = "keep history" // earlier content is kept
	Prune       Activity = "prune history"
	Parts       Activity = "free parts" // uploads that were never completed are given up
	Share       Activity = "share space"
	Credentials Activity = "get credentials" // those of the store, when they are needed or end
)

// A Failure is an activity that fails: since its first failure after a success, with
// the last error.
type Failure struct {
	Activity    Activity
	Since, Last time.Time
	Times       int
	Err         error
}

// String says it on one line, without the time.
func (f Failure) String() string {
	return fmt.Sprintf("%s fails (%s): %v", f.Activity, times(f.Times), f.Err)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Record is what fails now. Make it with New.
type Record struct {
	now func() time.Time

	mu      sync.Mutex // guards what follows; no other lock is taken under it
	failing map[Activity]Failure
}

// New makes a record in which nothing fails.
func New(now func() time.Time) *Record {
	return &Record{now: now, failing: map[Activity]Failure{}}
}

// Ended is Failed or Succeeded, by err.
func (r *Record) Ended(a Activity, err error) (news bool) {
	if err == nil {
		r.Succeeded(a)
		return false
	}
	return r.Failed(a, err)
}

// Failed notes that an activity has failed. news says that it did not fail before,
// or for another reason.
func (r *Record) Failed(a Activity, err error) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, fails := r.failing[a]
	news = !fails || f.Err.Error() != err.Error()
	f.Activity, f.Last, f.Err = a, r.now(), err
	if !fails {
		f.Since = f.Last
	}
	f.Times++
	r.failing[a] = f
	return news
}

// Succeeded forgets the failures of an activity.
func (r *Record) Succeeded(a Activity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failing, a)
}

// Failures are the activities that fail, by name.
func (r *Record) Failures() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Failure
	for _, f := range r.failing {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Failure) int { return cmp.Compare(a.Activity, b.Activity) })
	return all
}
