package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
)

// commitsText says how many commits are not pushed, since when, and why.
func commitsText(u *cache.Unpushed, now time.Time) string {
	text := "commits"
	if u.Commits > 0 {
		text = count(u.Commits, "commit")
	}
	if !u.Since.IsZero() {
		text += ", " + plural(u.Commits, "", "the oldest ") + age(u.Since, now) + " ago"
	}
	if !u.Owed.IsZero() {
		text += "; the push is owed for " + age(u.Owed, now)
	}
	if u.Error != "" {
		text += ": " + u.Error
	}
	return text
}

// failsText says of what is tried again for how long it is to be there, and why it
// is not.
func failsText(f *control.Fails, now time.Time) string {
	if f.Error == "" {
		return "owed for " + age(f.Since, now)
	}
	return fmt.Sprintf("fails for %s: %s", age(f.Since, now), f.Error)
}

// isAllSent reports whether a mount has nothing that its stores, and their remotes, lack.
func isAllSent(s control.Status) bool {
	return unsentIn(s) == 0 && heldBack(s) == 0 && s.ConflictsTotal == 0 && !unpushed(s)
}

// unpushed reports whether there are commits that a remote does not have, and
// pushFails whether it does not get them.
func unpushed(s control.Status) bool {
	return slices.ContainsFunc(s.Parts, func(p control.Part) bool { return p.Copy != nil && p.Copy.Unpushed })
}

func pushFails(s control.Status) bool {
	return slices.ContainsFunc(s.Parts, func(p control.Part) bool {
		return p.Copy != nil && p.Copy.PushFails != nil && p.Copy.PushFails.Error != ""
	})
}

// failing is work that fails in the background of a mount; "" if none does.
func failing(s control.Status) string {
	for _, p := range s.Parts {
		if p.Copy != nil && len(p.Copy.Failing) > 0 {
			return p.Copy.Failing[0].Activity
		}
	}
	return ""
}
