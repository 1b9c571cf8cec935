package remote

import (
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// refusals are the words of servers for the reasons why they do not take a push, the
// more particular first: GitHub's numbers and sentences, GitLab's, Gitea's, and
// git's own for any hook.
var refusals = []struct{ words, code string }{
	{"workflows` permission", providers.RefusedWorkflow},
	{"`workflow` scope", providers.RefusedWorkflow},
	{"create or update workflow", providers.RefusedWorkflow},
	{"push cannot contain secrets", providers.RefusedSecret},
	{"gh001", providers.RefusedSize},
	{"file size limit", providers.RefusedSize},
	{"large files detected", providers.RefusedSize},
	{"exceeds the maximum", providers.RefusedSize},
	{"gh006", providers.RefusedBranch},
	{"gh013", providers.RefusedBranch},
	{"protected branch", providers.RefusedBranch},
	{"protected ref", providers.RefusedBranch},
	{"not allowed to push code to protected", providers.RefusedBranch},
	{"hook declined", providers.RefusedHook},
}

// Code is the contract's code for this refusal. A hook's words
// come beside the reason, so both are looked at.
func (e *RefusedError) Code() string {
	said := strings.ToLower(e.Reason + "\n" + e.Said)
	for _, r := range refusals {
		if strings.Contains(said, r.words) {
			return r.code
		}
	}
	return providers.RefusedOther
}
