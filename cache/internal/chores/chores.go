// Package chores keeps what a person should know of a working copy that no error of a system
// call tells: what fails in the background, what the store refuses and why, and problems, which
// no one would expect.
//
// It knows activities by name and their last errors. It knows nothing of what they
// do, and tries nothing again.
//
//	r := chores.New(chores.Options{Now: time.Now, ...})
//	r.Ended(chores.Pull, pull())
//	r.Answered(chores.Read, "dir/file", read("dir/file"))
//	r.Failures() // what fails now
//	r.Problems() // what was told
//
// # What it promises
//
// A failure is kept until the same activity has succeeded, and told once for each reason. One
// of requests, of which some may succeed while others fail, is told again only when the store
// has not refused for that reason for a while.
// What was broken off, to be done again, has neither failed nor succeeded, nor has what is
// halted until a person has said something. All methods may be called at the same time,
// under any lock but where they say otherwise, and wait for nothing.
package chores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
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
	Parts       Activity = "abort uploads" // uploads that were never completed are given up
	Share       Activity = "share space"
	Credentials Activity = "get credentials" // those of the store, when they are needed or end
)

// The requests for what programs look at, which get an errno when the store refuses.
const (
	Stat = Activity(providers.MethodStat)
	List = Activity(providers.MethodList)
	Read = Activity(providers.MethodRead)
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

// Problem is something about the working copy that a person should know of.
type Problem struct {
	Time time.Time
	Op   string
	Path string // where it was
	Err  error
}

// maxProblems bounds what is remembered; the log has all.
const maxProblems = 200

// Options are what a Record needs of those who use it.
type Options struct {
	Now     func() time.Time
	Context context.Context // ends with the working copy
	Halted  error           // of what waits for a person
	// Told is called with each problem.
	Told func(path string, err error)
	Log  *slog.Logger
}

// Record is what fails now, and what has gone wrong. Make it with New.
type Record struct {
	o Options

	mu       sync.Mutex // guards what follows; no other lock is taken under it
	failing  map[Activity]Failure
	refused  map[refusal]time.Time // when each refusal was the last time
	problems []Problem             // the newest last
}

// A refusal is why the store does not do what it is asked for, whatever name it was about.
type refusal struct {
	Activity
	why string
}

// quiet is for how long the store is not to have refused for a reason until that is news again.
const quiet = time.Minute

// New makes a record in which nothing fails.
func New(o Options) *Record {
	return &Record{o: o, failing: map[Activity]Failure{}, refused: map[refusal]time.Time{}}
}

// Ended notes what became of an activity, and tells of a failure that is news. It must not be
// called under a lock that Told may wait for.
func (r *Record) Ended(a Activity, err error) {
	if r.Note(a, err) {
		r.o.Log.Warn("work in the background fails", "activity", a, "err", err)
		r.remember(string(a), "", err)
	}
}

// Note is Ended without a word. news says that the activity did not fail before, or for
// another reason.
func (r *Record) Note(a Activity, err error) (news bool) {
	if err == nil {
		r.Succeeded(a)
	}
	if err == nil || r.IsBrokenOff(err) || errors.Is(err, r.o.Halted) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f, fails := r.failing[a]
	news = !fails || f.Err.Error() != err.Error()
	f.Activity, f.Last, f.Err = a, r.o.Now(), err
	if !fails {
		f.Since = f.Last
	}
	f.Times++
	r.failing[a] = f
	return news
}

// Answered notes how the store answered a request for something at a path: nil says that it
// did, an error that it refuses. It must not be called under a lock that Told may wait for.
func (r *Record) Answered(a Activity, path string, err error) {
	r.Note(a, err)
	if err == nil || r.IsBrokenOff(err) || !r.isNews(refusal{a, reasonOf(err)}) {
		return
	}
	r.o.Log.Warn("the store refuses a request", "op", a, "path", path, "err", err)
	r.remember(string(a), path, err)
}

// isNews notes a refusal, and reports whether there was none like it for a while.
func (r *Record) isNews(like refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now()
	maps.DeleteFunc(r.refused, func(_ refusal, last time.Time) bool { return now.Sub(last) > quiet })
	_, known := r.refused[like]
	r.refused[like] = now
	return !known
}

// reasonOf is the kind of a refusal and the code of the service, whose own words may name what
// was asked for.
func reasonOf(err error) string {
	var e *providers.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%v (%s)", e.Kind, e.Code)
	}
	return err.Error()
}

// IsBrokenOff reports whether an error says that work ended before it had a result, to be
// done again.
func (r *Record) IsBrokenOff(err error) bool {
	return r.o.Context.Err() != nil || errors.Is(err, context.Canceled) && !errors.Is(err, providers.ErrUnavailable)
}

// Report tells of a problem: a failure, or what no one would expect. It must not be called
// under a lock that Told may wait for.
func (r *Record) Report(op, path string, err error) {
	r.o.Log.Error("the store and the working copy differ, or will", "op", op, "path", path, "err", err)
	r.remember(op, path, err)
}

func (r *Record) remember(op, path string, err error) {
	err = providers.Nameless(err, path)
	r.mu.Lock()
	if len(r.problems) == maxProblems {
		r.problems = slices.Delete(r.problems, 0, 1)
	}
	r.problems = append(r.problems, Problem{r.o.Now(), op, path, err})
	r.mu.Unlock()
	r.o.Told(path, err)
}

// Problems are the last that were told.
func (r *Record) Problems() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Problem(nil), r.problems...)
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
