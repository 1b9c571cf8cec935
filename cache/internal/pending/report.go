package pending

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Description is the message and authorship of a commit where the remote has such. The zero value
// works: the message describes the change.
type Description struct {
	Message   string
	Author    providers.Identity
	CoAuthors []providers.Identity
	Trailers  []providers.Trailer
}

// Report is the result of a commit.
type Report struct {
	Revision  providers.Revision // "" where the remote has none
	Committed bool               // at least one name was sent
	Changes   int                // names that were sent
	HeldBack  []HeldBack
	Conflicts []string // paths that another had changed too: held back, or decided by the conflict policy
	Pushed    bool
	PushError error // the commit is there, and was not pushed
}

// Add adds the result of the next commit.
func (r *Report) Add(next Report) {
	next.Committed = next.Committed || r.Committed
	next.Changes += r.Changes
	next.Conflicts = Paths(r.Conflicts, next.Conflicts)
	*r = next
}

// HoldBack adds a name that was not sent.
func (r *Report) HoldBack(h HeldBack) {
	r.HeldBack = append(r.HeldBack, h)
	if h.Conflict {
		r.Conflicts = append(r.Conflicts, h.Path)
	}
}

// HeldBack is a change that the remote does not have, and why.
type HeldBack struct {
	Path     string
	Reason   string
	Conflict bool
}

// Refusal is the reason why a change is not taken as it is, though its name is all right.
type Refusal struct {
	Text   string
	Passes bool // it may go later as it is
	Secret bool // it is about the content itself
	Asked  bool // the answer came from the provider
}

func (e *Refusal) Error() string { return e.Text }

// RefusalOf is the refusal that an error is, or nil.
func RefusalOf(err error) (e *Refusal) {
	errors.As(err, &e)
	return e
}

// OnItsWay is the reason of a change that no known reason keeps back.
const OnItsWay = "on its way, or waits for what it depends on"

// IsPending reports whether no known reason keeps the change back.
func (h HeldBack) IsPending() bool { return h.Reason == OnItsWay }

// Paths are those of both lists, in order, each once.
func Paths(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// MostShown bounds the names that are listed to a person.
const MostShown = 1000

// UnsavedError says that changes which policy wanted sent are not at the remote. They are kept in
// the working copy and listed there.
type UnsavedError struct {
	Files []HeldBack // the first of them
	Count int
	Err   error // why the last try ended; nil: each has its own reason
}

// Error names the files with their reasons, a reason of all of them once.
func (e *UnsavedError) Error() string {
	text, all := map[bool]string{true: "1 change is", false: fmt.Sprintf("%d changes are", e.Count)}[e.Count == 1]+" not in the store", ""
	if e.Err != nil {
		all = e.Err.Error()
		text += ": " + all
	}
	for i, f := range e.Files {
		if i == 10 {
			return text + "\n\t..."
		}
		text += "\n\t" + f.Path
		if !strings.HasSuffix(all, f.Reason) {
			text += ": " + f.Reason
		}
	}
	return text
}

// Unwrap is why the last try ended.
func (e *UnsavedError) Unwrap() error { return e.Err }
