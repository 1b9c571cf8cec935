// Package statustext says how a mount is in rows of a name and a value: those that `wsmount
// status` prints, and `wsmount ui` shows.
//
//	statustext.Mount(row, status, time.Now())
//	for _, p := range status.Parts {
//		statustext.Part(row, p, time.Now())
//	}
//
// A value may be empty: such a row is not shown. Names, and texts of stores, are as they are:
// the caller that shows a row makes one line of it.
package statustext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/progress"
)

// A Row takes a name and a value.
type Row = func(name, value string)

// Mount says how a mount is as a whole. Part says it of each of its parts.
func Mount(row Row, s control.Status, now time.Time) {
	row("state", stateText(s, now))
	row("manifest", s.Source+Note(s.Unverified, "unverified: it is not registered"))
	row("access", accessText(s))
	row("kernel", s.Passthrough.Text())
	row("fetching", s.Fetching.Text())
	row("state dir", s.StateDir+Note(s.Durability != "disk", s.Durability))
	row("log", s.Log)
	for _, n := range s.Notes {
		row("note", n)
	}
	for _, h := range s.Hooks {
		row("hook", h.Text())
	}
}

// accessText says whether something can be changed, and why not.
func accessText(s control.Status) string {
	switch {
	case s.Lasting:
		return "read-only (the kernel refuses changes before wsmount counts them)"
	case s.ReadOnly:
		return "read-only for now: " + s.Parts[0].ReadOnly
	}
	return "read-write"
}

// Part says how a part is: of an unavailable one, only why.
func Part(row Row, p control.Part, now time.Time) {
	if p.Unavailable != "" {
		row("unavailable", p.Unavailable)
		return
	}
	row("store", strings.TrimSpace(p.Provider+", "+p.Mode+" "+p.Path)+Note(p.Unverified, "unverified")+Note(p.Closed != "", "closed: "+p.Closed))
	row(p.Store.Text())
	row("code", p.Code.String())
	row("commits by", p.Identity())
	if p.ReadOnly != "" {
		row("read-only", fmt.Sprintf("%s; %s refused", p.ReadOnly, Count(int(p.Refused), "change")))
	}
	if p.Moved != "" {
		row("moved", "the directory is not at its path any more, but at "+p.Moved)
	}
	if len(p.OtherMounts) > 0 {
		row("not served", fmt.Sprintf("another file system is mounted at %s; %s refused", strings.Join(p.OtherMounts, ", "), Count(int(p.NotEntered), "lookup")))
	}
	row("watch", p.Watch.Text())
	files := fmt.Sprintf("%d open (%s)", p.OpenFiles, p.IOMode)
	if p.Inodes > 0 {
		files += fmt.Sprintf(", %s known", Count(p.Inodes, "inode"))
	}
	row("files", files)
	row("unsaved", unsavedText(p, now))
	copyRows(row, p, now)
	if len(p.Governing) > 0 {
		row("governing", strings.Join(p.Governing, ", "))
	}
	if p.Errors > 0 {
		row("errors", fmt.Sprint(p.Errors))
	}
	for i := max(0, len(p.Recent)-3); i < len(p.Recent); i++ {
		f := p.Recent[i]
		row("", fmt.Sprintf("%s ago: %s %s: %s", Age(f.Time, now), f.Op, f.Path, cmp.Or(f.Errno, f.Error)))
	}
}

// copyRows say how the working copy of a remote store is: failures, and
// states that need a person, first.
func copyRows(row Row, p control.Part, now time.Time) {
	c := p.Copy
	if c == nil {
		return
	}
	for _, h := range c.Halted {
		row("halted", h+" (--confirm allows it)")
	}
	if c.Unreachable > 0 {
		text := fmt.Sprintf("failing for %s", time.Duration(c.Unreachable*float64(time.Second)).Round(time.Second))
		if c.LastError != "" {
			text += ": " + c.LastError
		}
		row("store", text)
	} else if c.LastError != "" {
		row("last error", c.LastError)
	}
	if c.Stale {
		row("stale", "what is shown could not be checked at the store in time")
	}
	for _, f := range c.Failing {
		row("failing", fmt.Sprintf("%s, for %s%s", f.Activity, Age(f.Since, now), unless(f.Error == c.LastError, f.Error)))
	}
	if c.PutOff != "" {
		row("pull", "put off: "+c.PutOff)
	}
	for _, h := range c.Held[:min(len(c.Held), 5)] {
		row(map[bool]string{true: "conflict", false: "held back"}[h.Conflict], h.Path+": "+h.Reason)
	}
	for _, t := range c.InFlight[:min(len(c.InFlight), 3)] {
		row("sending", fmt.Sprintf("%s %s, %s", t.What, t.Path, progress.Transfer(t.Sent, t.Size, time.Duration(t.Seconds*float64(time.Second)))))
	}
	branchRows(row, p, now)
	row("sync", c.Policy)
	row("last pull", agoText(c.LastPull, now))
	if p.ReadOnly == "" {
		row("last push", agoText(c.LastPush, now))
	}
	if c.Unpushed {
		row("unpushed", Commits(&cache.Unpushed{Commits: c.UnpushedCommits, Since: c.UnpushedSince}, now))
	}
	row("revision", c.Revision)
	row("clone", cloneText(c.Clone, now))
	row("history", historyText(c))
	row("requests", c.RequestsText())
	if c.Excluded > 0 {
		row("excluded", Plural(c.Excluded, "1 entry of the store is hidden", fmt.Sprintf("%d entries of the store are hidden", c.Excluded)))
	}
}

// cloneText says how much of a repository is local.
func cloneText(c *control.Clone, now time.Time) string {
	if c == nil {
		return ""
	}
	text := c.Kind
	if c.Missing > 0 {
		text += fmt.Sprintf(", %s missing", Count(c.Missing, "content"))
	}
	if c.Fetching > 0 {
		text += fmt.Sprintf(", %d on their way", c.Fetching)
	}
	if c.Paused != "" {
		text += "; " + c.Paused
	}
	if c.Error != "" {
		text += fmt.Sprintf("; requests fail for %s: %s", Age(c.Failing, now), c.Error)
	}
	return text
}

// branchRows say where commits go, and which branches wait to be merged.
func branchRows(row Row, p control.Part, now time.Time) {
	c := p.Copy
	for i, f := range []*control.Fails{c.PushFails, c.PullsFails} {
		if f != nil {
			said := slices.ContainsFunc(c.Failing, func(a control.Failing) bool { return strings.HasPrefix(a.Error, f.Error) })
			row([]string{"push", "pr"}[i], failsText(f, said, now))
		}
	}
	tracked := ""
	if p.Store != nil {
		tracked = p.Store.Branch
	}
	row("branch", cmp.Or(c.Branch, tracked)+Note(tracked != "" && c.Branch != "" && c.Branch != tracked, "it began at "+tracked))
	for _, b := range c.Branches[:min(len(c.Branches), 5)] {
		text := b.Name
		if b.Commits > 0 { // the tracked branch lacks none of its own
			text += ", " + Count(b.Commits, "commit")
		}
		text += Note(!b.Pushed, "not pushed")
		switch {
		case b.Refused != "":
			text += fmt.Sprintf("; refused for %s (%s): %s", Age(b.RefusedSince, now), b.Refused, b.RefusedSays)
		case b.PRURL != "":
			text += "; " + b.PRURL
		case !b.PRWanted.IsZero():
			text += "; a pull request is wanted for " + Age(b.PRWanted, now)
		}
		row("unmerged", text)
	}
}

func historyText(c *control.Copy) string {
	if c.HistoryVersions < 0 {
		return bytesize.Text(c.HistoryBytes)
	}
	return fmt.Sprintf("%s, %s", Count(c.HistoryVersions, "version"), bytesize.Text(c.HistoryBytes))
}

func stateText(s control.Status, now time.Time) string {
	text := fmt.Sprintf("%s, pid %d, since %s", s.State, s.PID, s.Started.Format(time.DateTime))
	if len(s.HeldBy) > 0 {
		text += "; held in another mount namespace by " + mountpoint.Names(s.HeldBy)
	} else if s.State == control.Detached {
		text += "; it is out of sight, and files in it are open, or a mount elsewhere has it"
	}
	switch s.State {
	case control.Dead:
		return text + "; the daemon is gone: run `wsmount umount " + s.Mountpoint + "` or mount it again; what follows was true " +
			Age(s.Taken, now) + " ago, but for what is unsaved, which is as it is now"
	case control.NotResponding:
		return text + "; what follows was true " + Age(s.Taken, now) + " ago"
	}
	return text
}

func unsavedText(p control.Part, now time.Time) string {
	if p.Unsaved.Unknown != "" {
		return "not known: " + p.Unsaved.Unknown
	}
	if p.Unsaved.Files == 0 && p.Unsaved.Names == 0 && p.HeldBack == 0 && p.Conflicts == 0 {
		return "nothing" + p.CopiesText()
	}
	text := bytesize.Text(p.Unsaved.Bytes)
	if others := p.Unsaved.Names - p.Unsaved.Files; others > 0 {
		text = Count(others, "change") + " of names or attributes, " + text
	}
	if p.Unsaved.Files > 0 {
		text = Count(p.Unsaved.Files, "file") + " changed, " + text
	}
	if !p.Unsaved.Oldest.IsZero() {
		text += ", the oldest " + Age(p.Unsaved.Oldest, now)
	}
	return text + fmt.Sprintf("; %d held back, %s", p.HeldBack, Count(p.Conflicts, "conflict")) + p.CopiesText()
}

// Commits says how many commits are not pushed, since when, and why.
func Commits(u *cache.Unpushed, now time.Time) string {
	text := commits(u.Commits)
	if !u.Since.IsZero() {
		text += ", " + Plural(u.Commits, "", "the oldest ") + Age(u.Since, now) + " ago"
	}
	if !u.Owed.IsZero() {
		text += "; the push is owed for " + Age(u.Owed, now)
	}
	if u.Error != "" {
		text += ": " + u.Error
	}
	return text
}

// commits is a number of commits; 0: not known.
func commits(n int) string {
	if n == 0 {
		return "commits"
	}
	return Count(n, "commit")
}

// failsText says for how long an action that is tried again is owed, and why it
// fails, unless that was said.
func failsText(f *control.Fails, said bool, now time.Time) string {
	if f.Error == "" {
		return "owed for " + Age(f.Since, now)
	}
	return fmt.Sprintf("fails for %s%s", Age(f.Since, now), unless(said, f.Error))
}

// AllSent reports whether a mount has nothing that its stores, and their remotes, lack.
func AllSent(s control.Status) bool {
	return Unsent(s) == 0 && heldBack(s) == 0 && s.ConflictsTotal == 0 && !unpushed(s)
}

// Left lists, for each part of a mount, the changes that its store lacks, and why, one line each.
func Left(s control.Status) (list []string) {
	for _, p := range s.Parts {
		var what []string
		if n := p.Unsaved.Names; n > 0 {
			what = append(what, Count(n, "change")+Plural(n, " is", " are")+" not sent")
		}
		if p.Copy != nil && p.Copy.Unpushed {
			n := p.Copy.UnpushedCommits
			what = append(what, commits(n)+Plural(n, " is", " are")+" not pushed")
		}
		if what != nil {
			list = append(list, p.Name+": "+strings.Join(what, ", ")+whyLeft(p.Copy))
		}
	}
	return list
}

// whyLeft is why a working copy's store lacks changes, to follow their list; "" where that is not
// known.
func whyLeft(c *control.Copy) string {
	why := cmp.Or(c.LastError, c.Away)
	for _, f := range c.Failing {
		switch f.Activity {
		case "upload", control.VerbCommit, control.VerbPush, string(cache.ActivityCredentials):
			why = cmp.Or(why, f.Error)
		}
	}
	return unless(why == "", why)
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

// Summary is the one thing about a mount that a person should know first.
func Summary(s control.Status, now time.Time) string {
	if s.State != control.Ready {
		return string(s.State)
	}
	var failures uint64
	for _, p := range s.Parts {
		failures += p.Errors
		if p.Unavailable != "" {
			return "part unavailable"
		}
	}
	switch {
	case slices.ContainsFunc(s.Parts, func(p control.Part) bool { return p.Copy != nil && len(p.Copy.Halted) > 0 }):
		return "halted"
	case s.ConflictsTotal > 0:
		return Count(s.ConflictsTotal, "conflict")
	case heldBack(s) > 0:
		return fmt.Sprintf("%d held back", heldBack(s))
	case Unsent(s) > 0:
		return "unsaved changes"
	case pushFails(s):
		return "push fails"
	case failing(s) != "":
		return failing(s) + " fails"
	case failures > 0:
		return Count(int(failures), "error") // a count
	}
	return "ready " + Age(s.Started, now)
}

func heldBack(s control.Status) (n int) {
	for _, p := range s.Parts {
		n += p.HeldBack
	}
	return n
}

// Unsent counts the bytes and names that a mount still has to send to its stores. Commits
// that are not pushed are not among them, see AllSent.
func Unsent(s control.Status) int {
	n := int(s.UnsavedBytes)
	for _, p := range s.Parts {
		n += p.Unsaved.Names
		if p.Copy != nil {
			for _, t := range p.Copy.InFlight {
				n -= int(t.Sent)
			}
		}
	}
	return n
}
