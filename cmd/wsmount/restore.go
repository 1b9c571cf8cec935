package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
)

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "bring a file or a directory back as it was",
		ArgsUsage: "MOUNTPOINT PATH",
		Description: "A restore is a change like any other: nothing is taken from the history, and what it " +
			"replaces goes there. --to is a version that `wsmount log` names, a time, turn:ID or " +
			"conversation:ID: the state after that, or with --before the state before it.\n\n" +
			"  wsmount restore /mnt/ws docs/plan.md --to 12\n" +
			"  wsmount restore /mnt/ws docs --to turn:7 --before --dry-run",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "`STATE` to go back to: a version, a time, turn:ID or conversation:ID"},
			&cli.BoolFlag{Name: "before", Usage: "the state before that"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would be done"},
		},
		Action: restoreAction,
	}
}

func restoreAction(c *cli.Context) error {
	args, err := wantArgs(c, 2, 2)
	if err != nil {
		return err
	}
	req, err := parseState(c.String("to"), time.Now())
	if err != nil {
		return err
	}
	r, rel, err := wanted(c, args)
	if err != nil {
		return err
	}
	req.Path, req.Before, req.DryRun = rel, c.Bool("before"), c.Bool("dry-run")
	res, err := control.NewClient(r.SocketPath()).Restore(c.Context, req)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = printJSON(c.App.Writer, res)
	} else {
		printRestored(c.App.Writer, res)
	}
	if err == nil && len(res.Skipped) > 0 {
		return silent(exit.Failed)
	}
	return err
}

// parseState reads --to.
func parseState(to string, now time.Time) (r control.RestoreRequest, err error) {
	if id, ok := strings.CutPrefix(to, "turn:"); ok && id != "" {
		r.Turn = id
		return r, nil
	}
	if id, ok := strings.CutPrefix(to, "conversation:"); ok && id != "" {
		r.Conversation = id
		return r, nil
	}
	if _, err := strconv.ParseUint(to, 10, 64); err == nil {
		r.Version = to
		return r, nil
	}
	if to != "" {
		r.Time, err = parseTime("--to", to, now)
	}
	if to == "" || err != nil {
		return r, exit.New(exit.Usage, "--to %q is not a state", oneLine(to)).
			Hint("a version that `wsmount log` names, a time such as '2026-11-20 15:04' or 2h, turn:ID or conversation:ID")
	}
	return r, nil
}

func printRestored(w io.Writer, res control.RestoreResult) {
	verb := func(done, would string) string { return map[bool]string{true: would, false: done}[res.DryRun] }
	for _, p := range res.Restored {
		fmt.Fprintf(w, "%s %s\n", verb("restored", "would restore"), oneLine(p))
	}
	for _, p := range res.Removed {
		fmt.Fprintf(w, "%s %s\n", verb("removed", "would remove"), oneLine(p))
	}
	for _, s := range res.Skipped {
		fmt.Fprintf(w, "skipped %s: %s\n", oneLine(s.Path), oneLine(s.Reason))
	}
	if len(res.Restored)+len(res.Removed)+len(res.Skipped) == 0 {
		fmt.Fprintln(w, "it is so already")
	}
}
