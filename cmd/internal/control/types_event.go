package control

import (
	"slices"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// EventRequest emits a lifecycle event and waits for the work that it starts.
// Timeout is the longest time without progress.
type EventRequest struct {
	Name    string            `json:"name"`
	At      string            `json:"at,omitempty"` // only the part at this path; empty: all
	Vars    map[string]string `json:"vars,omitempty"`
	Timeout float64           `json:"timeoutSeconds,omitempty"`
	NoWait  bool              `json:"noWait,omitempty"`
}

// EventResult is the result of an event, summed over the parts that it reached.
type EventResult struct {
	Schema    string `json:"schema"`
	Event     string `json:"event"`     // with aliases resolved
	Parts     int    `json:"parts"`     // number that it reached
	Pulled    int    `json:"pulled"`    // names that others changed
	Committed int    `json:"committed"` // names that were sent
	Pushed    int    `json:"pushed"`    // pushes
	Revision  string `json:"revision,omitempty"`
	PRURL     string `json:"prUrl,omitempty"`
	Conflicts int    `json:"conflicts"`
	HeldBack  int    `json:"heldBack"`

	ConflictPaths []string `json:"conflictPaths,omitempty"` // the first of them, after the workspace's name

	Notes  []string `json:"notes,omitempty"`  // unexpected results that are no failures
	PutOff []string `json:"putOff,omitempty"` // pulls that wait, and why
	Failed []string `json:"failed,omitempty"` // failures
	Hint   string   `json:"hint,omitempty"`   // advice on the first failure, if known

	// Failing is the failing background work of the parts, whether this event asked for it or not.
	Failing []string `json:"failing,omitempty"`

	Exit int `json:"exit"` // the exit code for this result

	conflicts map[string]bool // the counted ones; nil in a received result
}

// maxConflictPaths bounds the conflicts that are named.
const maxConflictPaths = 100

// Conflict counts a conflict, once for each path.
func (r *EventResult) Conflict(path string) (first bool) {
	if r.conflicts[path] {
		return false
	}
	if r.conflicts == nil {
		r.conflicts = map[string]bool{}
	}
	r.conflicts[path] = true
	if r.Conflicts++; len(r.ConflictPaths) < maxConflictPaths {
		r.ConflictPaths = append(r.ConflictPaths, path)
	}
	return true
}

// Add adds the result of another part.
func (r *EventResult) Add(o EventResult) {
	r.Pulled += o.Pulled
	r.Committed += o.Committed
	r.Pushed += o.Pushed
	r.Conflicts += o.Conflicts
	r.ConflictPaths = append(r.ConflictPaths, o.ConflictPaths...)
	r.HeldBack += o.HeldBack
	r.PutOff = append(r.PutOff, o.PutOff...)
	r.Notes = append(r.Notes, o.Notes...)
	r.Failed = append(r.Failed, o.Failed...)
	r.Failing = append(r.Failing, o.Failing...)
	if o.Revision != "" {
		r.Revision = o.Revision
	}
	if o.PRURL != "" {
		r.PRURL = o.PRURL
	}
	switch {
	case o.Conflicts > 0:
		r.Exit = int(exit.Conflict)
	case o.HeldBack > 0 && r.Exit == 0:
		r.Exit = int(exit.Unsafe)
	}
}

// Fail notes a failure. The first failure chooses the exit code, unless there is a conflict.
func (r *EventResult) Fail(what string, code int, hint string) {
	if len(r.Failed) == 0 && r.Exit != int(exit.Conflict) {
		r.Exit, r.Hint = code, hint
	}
	if !slices.Contains(r.Failed, what) {
		r.Failed = append(r.Failed, what)
	}
}
