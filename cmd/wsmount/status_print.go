package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/screen"
)

// printStatus shows one mount in full, in the width of a terminal.
func printStatus(w io.Writer, s control.Status, now time.Time) {
	out := screen.Of(w)
	out.Wrapped("", 1, out.Paint(screen.Head, oneLine(s.Workspace))+" at "+oneLine(s.Mountpoint))
	row := rows(w, 2)
	row("state", stateText(s, now))
	row("manifest", s.Source+note(s.Unverified, "unverified: it is not registered"))
	row("access", map[bool]string{true: "read-only (the kernel refuses changes before wsmount counts them)", false: "read-write"}[s.ReadOnly])
	row("kernel", s.Passthrough.Text())
	row("fetching", s.Fetching.Text())
	row("state dir", s.StateDir+note(s.Durability != "disk", s.Durability))
	row("log", s.Log)
	for _, n := range s.Notes {
		row("note", n)
	}
	for _, h := range s.Hooks {
		row("hook", h.Text())
	}
	printParts(w, s.Parts, now)
	if len(s.OpenFiles) == 0 {
		return
	}
	fmt.Fprintf(w, "  open files\n")
	for _, f := range s.OpenFiles[:min(10, len(s.OpenFiles))] {
		out.Flow(6, fmt.Sprintf("    %-11s %3d open %3d writing", f.IOMode, f.Opens, f.Writers), oneLine(f.Path))
	}
}

// printParts shows each part below the one that it lies in.
func printParts(w io.Writer, parts []control.Part, now time.Time) {
	path := func(p control.Part) []string { return strings.Split(p.At, "/") }
	parts = slices.SortedStableFunc(slices.Values(parts), func(a, b control.Part) int { return slices.Compare(path(a), path(b)) })
	for i, p := range parts {
		margin := 2
		for _, before := range parts[:i] {
			if mountpoint.Within(p.At, before.At) {
				margin += 2
			}
		}
		printPart(w, p, margin, now)
	}
}

func printPart(w io.Writer, p control.Part, margin int, now time.Time) {
	fmt.Fprintf(w, "%*s%s  %s\n", margin, "", screen.Of(w).Paint(screen.Head, oneLine(p.At)), oneLine(p.Name))
	row := rows(w, margin+2)
	if p.Unavailable != "" {
		row("unavailable", p.Unavailable)
		return
	}
	row("store", strings.TrimSpace(p.Provider+", "+p.Mode+" "+p.Path)+note(p.Unverified, "unverified")+note(p.Closed != "", "closed: "+p.Closed))
	row(p.Store.Text())
	row("code", p.Code.String())
	row("commits by", p.Identity())
	if p.ReadOnly != "" {
		row("read-only", fmt.Sprintf("%s; %s refused", p.ReadOnly, count(int(p.Refused), "change")))
	}
	if p.Moved != "" {
		row("moved", "the directory is not at its path any more, but at "+p.Moved)
	}
	if len(p.OtherMounts) > 0 {
		row("not served", fmt.Sprintf("another file system is mounted at %s; %s refused", strings.Join(p.OtherMounts, ", "), count(int(p.NotEntered), "lookup")))
	}
	row("watch", p.Watch.Text())
	files := fmt.Sprintf("%d open (%s)", p.OpenFiles, p.IOMode)
	if p.Inodes > 0 {
		files += fmt.Sprintf(", %s known", count(p.Inodes, "inode"))
	}
	row("files", files)
	row("unsaved", unsavedText(p, now))
	printCopy(row, p, now)
	if len(p.Governing) > 0 {
		row("governing", strings.Join(p.Governing, ", "))
	}
	if p.Errors > 0 {
		row("errors", fmt.Sprint(p.Errors))
	}
	for i := max(0, len(p.Recent)-3); i < len(p.Recent); i++ {
		f := p.Recent[i]
		row("", fmt.Sprintf("%s ago: %s %s: %s", age(f.Time, now), f.Op, f.Path, orNothing(f.Errno, f.Error)))
	}
}

// printCopy shows how the working copy of a remote store is: what went wrong,
// or needs a person, first.
func printCopy(row func(name, value string), p control.Part, now time.Time) {
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
		row("failing", fmt.Sprintf("%s, for %s: %s", f.Activity, age(f.Since, now), f.Error))
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
	printBranches(row, p, now)
	row("sync", c.Policy)
	row("last pull", agoText(c.LastPull, now))
	if p.ReadOnly == "" {
		row("last push", agoText(c.LastPush, now))
	}
	if c.Unpushed {
		row("unpushed", commitsText(&cache.Unpushed{Commits: c.UnpushedCommits, Since: c.UnpushedSince}, now))
	}
	row("revision", c.Revision)
	row("clone", cloneText(c.Clone, now))
	row("history", historyText(c))
	row("requests", c.RequestsText())
	if c.Excluded > 0 {
		row("excluded", plural(c.Excluded, "1 entry of the store is hidden here", fmt.Sprintf("%d entries of the store are hidden here", c.Excluded)))
	}
}

// cloneText says how much of a repository is here.
func cloneText(c *control.Clone, now time.Time) string {
	if c == nil {
		return ""
	}
	text := c.Kind
	if c.Missing > 0 {
		text += fmt.Sprintf(", %s missing", count(c.Missing, "content"))
	}
	if c.Fetching > 0 {
		text += fmt.Sprintf(", %d on their way", c.Fetching)
	}
	if c.Paused != "" {
		text += "; " + c.Paused
	}
	if c.Error != "" {
		text += fmt.Sprintf("; requests fail for %s: %s", age(c.Failing, now), c.Error)
	}
	return text
}

// printBranches shows where commits go, and what of them waits to be merged.
func printBranches(row func(name, value string), p control.Part, now time.Time) {
	c := p.Copy
	for i, f := range []*control.Fails{c.PushFails, c.PullsFails} {
		if f != nil {
			row([]string{"push", "pr"}[i], failsText(f, now))
		}
	}
	tracked := ""
	if p.Store != nil {
		tracked = p.Store.Branch
	}
	row("branch", cmp.Or(c.Branch, tracked)+note(tracked != "" && c.Branch != "" && c.Branch != tracked, "it began at "+tracked))
	for _, b := range c.Branches[:min(len(c.Branches), 5)] {
		text := fmt.Sprintf("%s, %s%s", b.Name, count(b.Commits, "commit"), note(!b.Pushed, "not pushed"))
		switch {
		case b.Refused != "":
			text += fmt.Sprintf("; refused for %s (%s): %s", age(b.RefusedSince, now), b.Refused, b.RefusedSays)
		case b.PRURL != "":
			text += "; " + b.PRURL
		case !b.PRWanted.IsZero():
			text += "; a pull request is wanted for " + age(b.PRWanted, now)
		}
		row("unmerged", text)
	}
}

// agoText says when a store last gave or took something.
func agoText(t, now time.Time) string {
	if t.IsZero() {
		return "none since it was mounted"
	}
	return age(t, now) + " ago, at " + t.Local().Format(time.DateTime)
}

func historyText(c *control.Copy) string {
	if c.HistoryVersions < 0 {
		return bytesize.Text(c.HistoryBytes)
	}
	return fmt.Sprintf("%s, %s", count(c.HistoryVersions, "version"), bytesize.Text(c.HistoryBytes))
}

// rows is Screen.Rows.
func rows(w io.Writer, margin int) func(name, value string) { return screen.Of(w).Rows(margin) }

func note(when bool, text string) string {
	if !when || text == "" {
		return ""
	}
	return " (" + text + ")"
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
			age(s.Taken, now) + " ago, but for what is unsaved, which is as it is now"
	case control.NotResponding:
		return text + "; what follows was true " + age(s.Taken, now) + " ago"
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
	text := fmt.Sprintf("%s, %s, %s", count(p.Unsaved.Files, "file"),
		plural(p.Unsaved.Names, "1 change of names", fmt.Sprintf("%d changes of names", p.Unsaved.Names)), bytesize.Text(p.Unsaved.Bytes))
	if !p.Unsaved.Oldest.IsZero() {
		text += ", the oldest " + age(p.Unsaved.Oldest, now)
	}
	return text + fmt.Sprintf("; %d held back, %s", p.HeldBack, count(p.Conflicts, "conflict")) + p.CopiesText()
}
