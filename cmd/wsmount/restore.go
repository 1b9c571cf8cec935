package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/past"
)

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "bring a file or a directory back as it was",
		ArgsUsage: "MOUNTPOINT PATH",
		Description: "A restore is a change like any other: nothing is taken from the history, and what it " +
			"replaces goes there. PATH is a file, a directory, or . for all of the working copy. --to is " +
			past.StateForms + ": the state after that, or with --before the state before it; of an event the last " +
			"that changed something.\n\n" +
			"Content that is not kept here is looked for in the store's past: in the commits of a repository, and " +
			"among the versions of a bucket with versioning, if the credentials may list and read them " +
			"(s3:ListBucketVersions, s3:GetObjectVersion). What is nowhere is named and left as it is.\n\n" +
			"  wsmount restore /mnt/ws docs/plan.md --to 12\n" +
			"  wsmount restore /mnt/ws . --to turn:7 --before --dry-run\n" +
			"  wsmount restore /mnt/ws docs --commit 4fa44be",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "`STATE` to go back to"},
			&cli.StringFlag{Name: "commit", Usage: "the same as --to commit:`NAME`: four characters of it or more"},
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
	req := control.RestoreRequest{DryRun: c.Bool("dry-run")}
	to := c.String("to")
	if commit := c.String("commit"); commit != "" {
		if to != "" {
			return exit.New(exit.Usage, "--to and --commit are two states").Hint("give one of them")
		}
		to = "commit:" + commit
	}
	if req.State, err = past.State("--to", to, c.Bool("before"), time.Now()); err != nil {
		return err
	}
	r, rel, err := target(c, args)
	if err != nil {
		return err
	}
	req.Path = rel
	res, err := control.NewClient(r.SocketPath()).Restore(c.Context, req)
	if err != nil {
		return err
	}
	err = show(c, res, printRestored)
	if err == nil && len(res.Skipped) > 0 {
		return silent(exit.Failed)
	}
	return err
}

func printRestored(w io.Writer, res control.RestoreResult) {
	restored, removed := "restored ", "removed "
	if res.DryRun {
		restored, removed = "would restore ", "would remove "
	}
	printEach(w, restored, res.Restored)
	printEach(w, removed, res.Removed)
	for _, s := range res.Skipped {
		fmt.Fprintf(w, "skipped %s: %s\n", oneLine(s.Path), oneLine(s.Reason))
	}
	if len(res.Restored)+len(res.Removed)+len(res.Skipped) == 0 {
		fmt.Fprintln(w, "already in that state")
	}
}
