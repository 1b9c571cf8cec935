package statustext

import (
	"fmt"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
)

// Event says in a line which changes an event or a verb made.
func Event(res control.EventResult) string {
	return fmt.Sprintf("%s: %s pulled, %s committed, %d %s, %s, %d held back%s",
		res.Event, Count(res.Pulled, "file"), Count(res.Committed, "file"), res.Pushed, Plural(res.Pushed, "push", "pushes"), Count(res.Conflicts, "conflict"), res.HeldBack, Note(res.PRURL != "", res.PRURL))
}

// EventHint is the advice about parts of an event that were not done.
func EventHint(res control.EventResult) string {
	switch {
	case res.Conflicts > 0:
		return "`wsmount conflicts list` lists the conflicts that wait for you; `wsmount status` says how others ended"
	case res.HeldBack > 0:
		return "`wsmount status` says what is held back, and why"
	case len(res.Failed) == 0:
		return ""
	case res.Hint != "":
		return res.Hint
	}
	switch upload := res.Event == control.EventUpload; exit.Code(res.Exit) {
	case exit.Unsafe:
		if upload {
			return "mount the workspace and look at it; `wsmount commit --confirm` allows it, once"
		}
		return "look at it; `wsmount pull --confirm` or `wsmount commit --confirm` allows it, once"
	case exit.Unreachable:
		if upload {
			return "nothing is lost: the next mount, or the same command, tries again"
		}
		return "nothing is lost: it is tried again; `wsmount status` shows how long"
	case exit.Denied:
		return "the workspace's policy, or who holds the store, must allow it"
	}
	return "`wsmount status` tells more"
}
