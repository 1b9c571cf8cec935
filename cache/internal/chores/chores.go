// Package chores keeps the news about a working copy that no error of a system call carries:
// failures in the background, refusals of the store with their reasons, and unexpected
// problems.
//
// It knows activities by name and their last errors. It does not know their work, and retries
// none.
//
//	r := chores.New(chores.Options{Now: time.Now, ...})
//	r.Ended(chores.Pull, pull())
//	r.Answered(chores.Read, "dir/file", read("dir/file"))
//	r.Failures() // present failures
//	r.Problems() // reported ones
//
// # What it promises
//
// A failure is kept until the same activity has succeeded, and told once for each reason. One
// of requests, of which some may succeed while others fail, is told again only when the store
// has not refused for that reason for a while. Work that was broken off, to be done again, has
// neither failed nor succeeded, nor has work that is halted until a person decides. All methods
// may be called at the same time, under any lock but where they say otherwise, and wait for
// nothing.
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

// The activities of a working copy, and of the daemon that keeps it.
const (
	Pull        Activity = "pull"         // remote changes are applied locally
	Push        Activity = "push"         // commits go to the remote
	Commit      Activity = "commit"       // changes go to the store as one set
	Upload      Activity = "upload"       // changes go to the store one by one
	Branch      Activity = "branch"       // commits go to the branch that policy wants
	PullRequest Activity = "pull request" // one is opened for a pushed branch
	Keep        Activity = "keep history" // earlier content is kept
	Prune       Activity = "prune history"
	Parts       Activity = "abort uploads" // uploads that were never completed are given up
	Share       Activity = "share space"
	Credentials Activity = "get credentials" // those of the store, when they are needed or end
)

// The requests on behalf of programs, which get an errno when the store refuses.
const (
	Stat = Activity(providers.MethodStat)
	List = Activity(providers.MethodList)
	Read = Activity(providers.MethodRead)
)

// A Failure is an activity that fails, with the time of its first failure since it last
// succeeded, and the last error.
type Failure struct {
	Activity    Activity
	Since, Last time.Time
	Times       int
	Err         error
}

// String is the failure on one line, without the time.
func (f Failure) String() string {
	return fmt.Sprintf("%s fails (%s): %v", f.Activity, times(f.Times), f.Err)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Problem is an unexpected event in the working copy that a person should know of.
type Problem struct {
	Time time.Time
	Op   string
	Path string // of the entry
	Err  error
}

// maxProblems bounds the problems that are kept; the log has all.
const maxProblems = 200

// Options are the parts of a working copy that a Record needs.
type Options struct {
	Now     func() time.Time
	Context context.Context // ends with the working copy
	Halted  error           // the error of halted work
	// Told is called with each problem.
	Told func(path string, err error)
	Log  *slog.Logger
}

// Record has the present failures and the last problems. Make it with New.
type Record struct {
	o Options

	mu       sync.Mutex // guards the fields below; no other lock is taken under it
	failing  map[Activity]Failure
	refused  map[refusal]time.Time // when each last occurred
	problems []Problem             // the newest last
}

// A refusal is the reason why the store refuses requests, for any name.
type refusal struct {
	Activity
	why string
}

// quiet is the time without a refusal for a reason after which that reason is news again.
const quiet = time.Minute

// New makes a record in which nothing fails.
func New(o Options) *Record {
	return &Record{o: o, failing: map[Activity]Failure{}, refused: map[refusal]time.Time{}}
}

// Ended notes the result of an activity, and reports a failure that is news. It must not be
// called under a lock that Told may wait for.
func (r *Record) Ended(a Activity, err error) {
	if r.Note(a, err) {
		r.o.Log.Warn("work in the background fails", "activity", a, "err", err)
		r.remember(string(a), "", err)
	}
}

// Note is Ended without the report. news: the activity did not fail before, or for another
// reason.
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

// Answered notes the store's answer to a request for a path: nil for success, an error for a
// refusal. It must not be called under a lock that Told may wait for.
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

// reasonOf is the kind of a refusal and the code of the service, whose own message may contain
// the path.
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

// Report notes a problem, a failure or something unexpected, and tells it. It must not be
// called under a lock that Told may wait for.
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

// Problems are the last ones that were told.
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
