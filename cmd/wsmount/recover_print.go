package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/screen"
)

func printLeftovers(w io.Writer, out leftovers) {
	if len(out.Copies) == 0 {
		fmt.Fprintln(w, "nothing is unsaved in working copies that are not mounted")
	}
	for _, l := range out.Copies {
		printLeftover(w, l, 20)
	}
}

// printLeftover shows a working copy, and at most so many of its changes.
func printLeftover(w io.Writer, l leftover.Copy, most int) {
	screen.Of(w).Wrapped("", 1, oneLine(l.Workspace)+" in "+oneLine(l.Directory))
	row := rows(w, 2)
	row("storage", l.Place)
	switch {
	case l.Damaged != "":
		row("damaged", l.Damaged)
		row("", "`wsmount recover --scan "+l.Directory+"` rebuilds it")
		return
	case l.Full != "":
		row("unread", l.Full)
		row("", "`wsmount cache clear` gives up what the stores have, too")
		return
	case l.Unmounted != "":
		row("state", "its mount at "+l.Unmounted+" is out of sight and has not ended: it sends what is unsaved, or files in it are open")
		row("", "`wsmount umount "+l.Unmounted+"` waits for its end; what is unsaved then is listed here")
		return
	case l.Mounted:
		row("state", "mounted: `wsmount status` shows it")
		return
	case l.InUse:
		row("state", "in use by another command, or a mount that is starting: what is unsaved is not known")
		row("", "`wsmount recover list "+l.Directory+"` looks again")
		return
	}
	row("state", "not mounted"+note(l.Ended != "" && l.Ended != "clean", "the last mount did not end by itself: "+l.Ended))
	row("unsaved", fmt.Sprintf("%s, %s; %d suspect, %s, %d held back", count(l.Total, "change"), bytesize.Text(l.Bytes), l.Suspect, count(l.Conflicts, "conflict"), l.Held))
	if l.Unpushed != nil {
		row("unpushed", commitsText(l.Unpushed, time.Now()))
		row("unread", l.Unread)
	}
	for _, b := range l.Branches {
		row("", fmt.Sprintf("%s: %s", b.Name, count(len(b.Commits), "commit")))
		for _, c := range b.Commits[:min(len(b.Commits), most)] {
			screen.Of(w).Flow(6, fmt.Sprintf("    %.10s", c.Revision), oneLine(c.Subject)+note(true, oneLine(c.Author)))
		}
		if more := len(b.Commits) - most; more > 0 {
			fmt.Fprintf(w, "    and %d more\n", more)
		}
	}
	for _, u := range l.Unsaved[:min(len(l.Unsaved), most)] {
		screen.Of(w).Flow(6, fmt.Sprintf("    %-10s %9s", u.Change, bytesize.Text(u.Size)), oneLine(u.Path)+note(unsavedWhy(u) != "", oneLine(unsavedWhy(u))))
	}
	if more := l.Total - min(len(l.Unsaved), most); more > 0 {
		fmt.Fprintf(w, "    and %d more\n", more)
	}
	for _, name := range l.Recovered[:min(len(l.Recovered), most)] {
		row("nameless", name)
	}
}

func unsavedWhy(u cache.Unsaved) string {
	if u.Suspect {
		return "suspect: bytes may be missing" + note(u.Reason != "", u.Reason)
	}
	return u.Reason
}

func printExported(w io.Writer, into string, got leftover.Exported) {
	fmt.Fprintf(w, "%s copied to %s\n", count(len(got.Files), "file"), oneLine(into))
	for _, b := range got.Branches {
		fmt.Fprintf(w, "%s of %s: %s\n", count(len(b.Commits), "commit"), oneLine(b.Name), oneLine(got.Bundle))
	}
	if got.Bundle != "" {
		fmt.Fprintf(w, "in a clone of the repository: %s\n", got.Fetch())
	}
	if got.Large != "" {
		fmt.Fprintf(w, "what they have in LFS, for its .git/lfs/objects: %s\n", oneLine(got.Large))
	}
	for _, s := range got.Skipped {
		fmt.Fprintf(w, "skipped %s: %s\n", oneLine(s.Path), oneLine(s.Reason))
	}
	if got.Unread != "" {
		fmt.Fprintf(w, "not copied: %s\n", oneLine(got.Unread))
	}
}

func printScan(w io.Writer, dir string, got scanned) {
	wrapped := func(text string) { screen.Of(w).Wrapped("", 0, oneLine(text)) }
	way := "the next mount, or `wsmount recover upload " + dir + "`, sends them"
	if got.Unread != "" {
		way = "`wsmount recover export " + dir + " DIR` copies them"
	}
	wrapped(plural(len(got.Restored), "1 file has its name", fmt.Sprintf("%d files have their names", len(got.Restored))) + " again; " + way)
	wrapped("what was not sent of these is lost, and a scan cannot say what there was: " + strings.Join(got.Unknown, ", "))
	if got.Unread != "" {
		wrapped("commits that are not pushed may be lost, but for the files that are there again: " + got.Unread)
	}
	fmt.Fprintf(w, "the old state is kept in %s\n", got.Aside)
	printEach(w, "without its place: ", got.Recovered)
	for _, s := range got.Skipped {
		fmt.Fprintf(w, "lost %s: %s\n", oneLine(s.Path), oneLine(s.Reason))
	}
	if got.Unnamed+got.Kept > 0 {
		wrapped(fmt.Sprintf("%s without a name, which may be unsent ones of the last second, and %d of the history stay there", count(got.Unnamed, "file"), got.Kept))
	}
}
