package control

import (
	"slices"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// EventRequest emits a lifecycle event and waits for what it starts. Timeout is how
// long nothing may come further.
type EventRequest struct {
	Name    string            `json:"name"`
	At      string            `json:"at,omitempty"` // only the part at this path; empty: all
	Vars    map[string]string `json:"vars,omitempty"`
	Timeout float64           `json:"timeoutSeconds,omitempty"`
	NoWait  bool              `json:"noWait,omitempty"`
}

// EventResult is what an event did, summed over the parts that it reached.
type EventResult struct {
	Schema    string `json:"schema"`
	Event     string `json:"event"`     // with aliases resolved
	Parts     int    `json:"parts"`     // how many it reached
	Pulled    int    `json:"pulled"`    // names that others changed
	Committed int    `json:"committed"` // names that were sent
	Pushed    int    `json:"pushed"`    // pushes
	Revision  string `json:"revision,omitempty"`
	PRURL     string `json:"prUrl,omitempty"`
	Conflicts int    `json:"conflicts"`
	HeldBack  int    `json:"heldBack"`

	ConflictPaths []string `json:"conflictPaths,omitempty"` // the first of them, after the workspace's name

	Notes  []string `json:"notes,omitempty"`  // what went otherwise than expected, and is no failure
	PutOff []string `json:"putOff,omitempty"` // pulls that wait, and why
	Failed []string `json:"failed,omitempty"` // what could not be done
	Hint   string   `json:"hint,omitempty"`   // what to do about the first of that, where that is known

	// Failing is what fails in the background of the parts, whether this event asked
	// for it or not.
	Failing []string `json:"failing,omitempty"`

	Exit int `json:"exit"` // the exit code that this means

	conflicts map[string]bool // those that are counted; in what was received, none
}

// maxConflictPaths bounds the conflicts that are named.
const maxConflictPaths = 100

// Conflict counts a conflict, the first time that it is told of.
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

// Add adds what another part did.
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

// Fail notes what could not be done. The first failure chooses the exit code,
// unless there is a conflict.
func (r *EventResult) Fail(what string, code int, hint string) {
	if len(r.Failed) == 0 && r.Exit != int(exit.Conflict) {
		r.Exit, r.Hint = code, hint
	}
	if !slices.Contains(r.Failed, what) {
		r.Failed = append(r.Failed, what)
	}
}
