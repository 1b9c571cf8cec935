package cache

import (
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Guard says what a commit does not take, where the backend takes sets.
type Guard = commit.Guard

// Secrets are values that are not to get into a repository.
type Secrets = commit.Secrets

// toldAgain reports whether a name is held back for the same reason again: whoever asks
// for a commit has it looked at anew, and would be told each time.
func toldAgain(rec table.Name, cause error) bool {
	return rec.Held != nil && rec.Held.Reason == cause.Error() && commit.RefusalOf(cause) != nil
}

// toldBefore reports whether this run has told the same of a name already, about which
// the provider is asked each time.
func (e *engine) toldBefore(v *View, l table.Link, cause error) bool {
	g := commit.RefusalOf(cause)
	if g == nil || !g.Asked {
		return false
	}
	was := e.larger[l]
	e.larger[l] = g.Error()
	return was == g.Error()
}
