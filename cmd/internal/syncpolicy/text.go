package syncpolicy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// HasBranches reports whether commits go to branches of their own.
func HasBranches(s mountspec.Sync) bool {
	return s.Mode == mountspec.ModePullPush && s.Push.Branch != "" && s.Push.Branch != mountspec.BranchMain
}

// HasPulls reports whether pull requests are opened, or may be.
func HasPulls(s mountspec.Sync) bool { return s.Push.PR != "" && s.Push.PR != mountspec.PRNone }

// Text says in one line when a workspace is pulled, committed and pushed. writeBack says
// that its closes do not wait for the store.
func Text(s mountspec.Sync, writeBack bool) string {
	switch {
	case s.Mode != mountspec.ModePullPush && writeBack:
		return "write-back, commit " + cmp.Or(string(s.Commit.On), "each write")
	case s.Mode != mountspec.ModePullPush:
		return "each close waits for the store"
	}
	parts := []string{fmt.Sprintf("pull %s, every %s", cmp.Or(string(s.Pull.On), "never"), s.Pull.TTL.Round(time.Second))}
	if s.Pull.On.Resolve() == mountspec.EventManual {
		parts[0] = "pull manual"
	}
	parts = append(parts, "commit "+cmp.Or(string(s.Commit.On), "never"), "push "+cmp.Or(string(s.Push.On), "never"))
	if HasBranches(s) {
		parts = append(parts, "branches "+string(s.Push.Branch))
	}
	if HasPulls(s) {
		parts = append(parts, "pull requests "+string(s.Push.PR))
	}
	return strings.Join(parts, "; ")
}

// When says when an event of AIP-37 happens, in words for an agent that does not know it.
func When(t mountspec.Trigger) string {
	switch e := t.Resolve(); e {
	case "":
		return "never"
	case mountspec.EventWrite:
		return "by wsmount, soon after each change"
	case mountspec.EventDelete:
		return "by wsmount, soon after each removal"
	case mountspec.EventCommitCompleted:
		return "with each commit"
	case mountspec.EventManual:
		return "only when it is asked for from outside: not by you"
	default:
		base, seconds, idle := e.Templated()
		if idle {
			return fmt.Sprintf("by wsmount, after %v of quiet (%s)", time.Duration(seconds)*time.Second, base)
		}
		return fmt.Sprintf("at %q, of which the program that runs you tells wsmount", e)
	}
}
