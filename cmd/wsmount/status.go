package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show what is mounted and how it is",
		ArgsUsage: "[MOUNTPOINT]",
		Description: "Without an argument lists the mounts of this user. With one, or with --all, " +
			"shows each part: read-only or not and why, what is not saved yet, failed requests, " +
			"conflicts. Never touches a mount. A daemon that runs is waited for up to half a minute, also when several " +
			"hang; of one that is stopped or gone, what it said last is shown at once.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "show every mount in full"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "show it again whenever it changes, until it is interrupted or the mount is gone"},
		},
		Action: statusAction,
	}
}

// watchEvery is the interval of --watch.
const watchEvery = 2 * time.Second

func statusAction(c *cli.Context) error {
	if !c.Bool("watch") {
		return statusOnce(c)
	}
	out := screen.Of(c.App.Writer)
	if c.Bool("json") { // each document stands alone
		out = screen.Screen{Writer: c.App.Writer}
	}
	return out.Watch(c.Context, watchEvery, func(w io.Writer) error {
		c.App.Writer = w
		err := statusOnce(c)
		if e := exit.From(err); e != nil && e.What == "" { // a dead mount was shown as such
			err = nil
		}
		return err
	})
}

// statusList is the output of `wsmount status --json` without an argument.
type statusList struct {
	Schema string           `json:"schema"` // wsmount.status-list/v1
	Mounts []control.Status `json:"mounts"`
	Others []string         `json:"others,omitempty"` // mounts with state elsewhere

	// Unmounted are, with --all, working copies with content that no store has.
	Unmounted []leftover.Copy `json:"unmounted,omitempty"`
	Unlooked  []string        `json:"unlooked,omitempty"` // those that did not answer in time
}

func statusOnce(c *cli.Context) error {
	args, err := wantArgs(c, 0, 1)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return statusOf(c, args[0])
	}
	records, err := allMounts(c)
	if err != nil {
		return err
	}
	list := statusList{Schema: "wsmount.status-list/v1", Mounts: mounts.LookAll(c.Context, records), Others: others(records)}
	if c.Bool("all") {
		if list.Unmounted, list.Unlooked, err = unmounted(c); err != nil {
			return err
		}
	}
	if c.Bool("all") {
		return show(c, list, printAll)
	}
	return show(c, list, printList)
}

// printAll shows each mount in full, and the unsaved changes of unmounted working copies.
func printAll(w io.Writer, l statusList) {
	if len(l.Mounts) == 0 && len(l.Unmounted) == 0 {
		fmt.Fprintln(w, "nothing is mounted, and nothing is unsaved")
	}
	for i, s := range l.Mounts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printStatus(w, s, time.Now())
	}
	for i, left := range l.Unmounted {
		if i+len(l.Mounts) > 0 {
			fmt.Fprintln(w)
		}
		printLeftover(w, left, 3)
	}
	printEach(w, "\nnot looked at in time: ", l.Unlooked)
}

// unmounted inspects all working copies, and returns those that are not mounted and
// hold unsaved changes; those that did not answer in time are only named.
func unmounted(c *cli.Context) (found []leftover.Copy, unlooked []string, err error) {
	dirs, err := findCopies(c, "")
	if err != nil {
		return nil, nil, err
	}
	results := make([]chan leftover.Copy, len(dirs))
	slots := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i, dir := range dirs {
		results[i] = make(chan leftover.Copy, 1)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] <- leftover.Look(dir, shownUnsaved)
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(control.AnswerLimit):
	}
	for i, dir := range dirs {
		select {
		case l := <-results[i]:
			if l.Matters() {
				found = append(found, l)
			}
		default:
			unlooked = append(unlooked, dir)
		}
	}
	return found, unlooked, nil
}

func statusOf(c *cli.Context, path string) error {
	r, err := findMount(c, path)
	if err != nil {
		return err
	}
	s := mounts.Look(c.Context, r)
	err = show(c, s, func(w io.Writer, s control.Status) { printStatus(w, s, time.Now()) })
	if err == nil && (s.State == control.Dead || s.State == control.NotResponding) {
		return silent(exit.Failed)
	}
	return err
}

// others lists mounts of wsmount that no record names.
func others(records []*state.Record) []string {
	table, err := mountpoint.ReadTable()
	if err != nil {
		return nil
	}
	known := map[string]bool{}
	for _, r := range records {
		known[r.Mountpoint] = known[r.Mountpoint] || !mounts.Replaced(table, r)
	}
	var out []string
	for _, m := range table {
		if m.Ours() && m.Root == "/" && !known[m.Path] {
			out = append(out, m.Path)
		}
	}
	return out
}

func printList(w io.Writer, l statusList) {
	if len(l.Mounts) == 0 && len(l.Others) == 0 {
		fmt.Fprintln(w, "nothing is mounted")
		return
	}
	out, table := screen.Of(w), [][]string{}
	for _, s := range l.Mounts {
		text, colour := statustext.Summary(s, time.Now()), screen.Warn
		if strings.HasPrefix(text, string(control.Ready)) {
			colour = screen.Good
		}
		table = append(table, []string{oneLine(s.Workspace), oneLine(s.Mountpoint), access(s.ReadOnly), out.Paint(colour, text)})
	}
	for _, path := range l.Others {
		table = append(table, []string{"?", oneLine(path), "?", "state elsewhere"})
	}
	out.Table([]string{"WORKSPACE", "MOUNTPOINT", "ACCESS", "STATE"}, table)
}

func access(readOnly bool) string {
	if readOnly {
		return "ro"
	}
	return "rw"
}

// printStatus shows one mount in full, in the width of a terminal.
func printStatus(w io.Writer, s control.Status, now time.Time) {
	out := screen.Of(w)
	out.Wrapped("", 1, out.Paint(screen.Head, oneLine(s.Workspace))+" at "+oneLine(s.Mountpoint))
	statustext.Mount(rows(w, 2), s, now)
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
	out := screen.Of(w)
	path := func(p control.Part) []string { return strings.Split(p.At, "/") }
	parts = slices.SortedStableFunc(slices.Values(parts), func(a, b control.Part) int { return slices.Compare(path(a), path(b)) })
	for i, p := range parts {
		margin := 2
		for _, before := range parts[:i] {
			if mountpoint.Within(p.At, before.At) {
				margin += 2
			}
		}
		fmt.Fprintf(w, "%*s%s  %s\n", margin, "", out.Paint(screen.Head, oneLine(p.At)), oneLine(p.Name))
		statustext.Part(rows(w, margin+2), p, now)
	}
}

// rows is Screen.Rows.
func rows(w io.Writer, margin int) func(name, value string) { return screen.Of(w).Rows(margin) }

func age(t, now time.Time) string { return statustext.Age(t, now) }

func count(n int, what string) string { return statustext.Count(n, what) }

func plural(n int, one, many string) string { return statustext.Plural(n, one, many) }

func note(when bool, text string) string { return statustext.Note(when, text) }

func commitsText(u *cache.Unpushed, now time.Time) string { return statustext.Commits(u, now) }
