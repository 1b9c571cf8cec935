package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/past"
	"github.com/wsmount/wsmount/cmd/internal/screen"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two states of a file or a directory",
		ArgsUsage: "MOUNTPOINT [PATH [FROM [TO]]]",
		Description: "Prints a unified diff of a file, or of each file below a directory or . that differs. " +
			"FROM and TO are each " + past.StateForms + ": the state after that. Without TO it is compared with " +
			"what is there now, without FROM, of a file, with the version before. Prints nothing when they " +
			"are equal.\n\n" +
			"  wsmount diff /mnt/ws docs/plan.md 12 17\n" +
			"  wsmount diff /mnt/ws . turn:7 turn:7 --before\n" +
			"  wsmount diff /mnt/ws --commit 4fa44be",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "before", Usage: "FROM is the state before that; TO stays the state after"},
			&cli.StringFlag{Name: "commit", Usage: "what the commit `NAME` changed, or NAME..NAME what the second has differently; of all files without PATH"},
		},
		Action: diffAction,
	}
}

func diffAction(c *cli.Context) error {
	least, most := 2, 4
	if c.String("commit") != "" {
		least, most = 1, 2
	}
	args, err := wantArgs(c, least, most)
	if err != nil {
		return err
	}
	paths := args[:min(len(args), 2)]
	req, err := diffRequest(args[len(paths):], c.Bool("before"), time.Now())
	if commit := c.String("commit"); commit != "" {
		req, err = commitRequest(commit, c.Bool("before"))
	}
	if err != nil {
		return err
	}
	r, rel, err := target(c, paths)
	if err != nil {
		return err
	}
	req.Path = rel
	res, err := control.NewClient(r.SocketPath()).Diff(c.Context, req)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, res)
	}
	_, err = fmt.Fprint(c.App.Writer, screen.Of(c.App.Writer).Diff(res.Diff))
	return err
}

// diffRequest reads FROM and TO, as far as they are given.
func diffRequest(args []string, before bool, now time.Time) (req control.DiffRequest, err error) {
	if before && len(args) == 0 {
		return req, exit.New(exit.Usage, "--before is about FROM, which is missing").
			Hint("for example wsmount diff MOUNTPOINT PATH turn:7 --before")
	}
	if len(args) > 0 {
		if req.From, err = past.State("FROM", args[0], before, now); err != nil {
			return req, err
		}
	}
	if len(args) > 1 {
		req.To, err = past.State("TO", args[1], false, now)
	}
	return req, err
}

// commitRequest reads a commit, or two.
func commitRequest(commit string, before bool) (req control.DiffRequest, err error) {
	from, to, two := strings.Cut(commit, "..")
	switch {
	case before:
		return req, exit.New(exit.Usage, "--before is about FROM, and --commit says what is compared").Hint("leave --before away")
	case !two:
		req.From, req.To = cache.State{Commit: commit, Before: true}, cache.State{Commit: commit}
	case from == "" || to == "":
		return req, exit.New(exit.Usage, "%q does not name two commits", oneLine(commit)).Hint("for example 4fa44be..9958ed3")
	default:
		req.From, req.To = cache.State{Commit: from}, cache.State{Commit: to}
	}
	return req, nil
}
