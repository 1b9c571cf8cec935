package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
)

func conflictsCommand() *cli.Command {
	return &cli.Command{
		Name:  "conflicts",
		Usage: "list and resolve conflicts between local and remote changes",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list the conflicts of a mount", ArgsUsage: "MOUNTPOINT",
				Action: listConflicts,
			},
			{
				Name: "show", Usage: "print one side of a conflict", ArgsUsage: "MOUNTPOINT PATH",
				Flags: []cli.Flag{&cli.StringFlag{Name: "side", Value: "theirs", Usage: "`SIDE`: base, ours or theirs"}},
				Description: "Writes the content as it is to standard output. base is what both sides began from, " +
					"as far as it is still known.",
				Action: showConflict,
			},
			{
				Name: "resolve", Usage: "end a conflict", ArgsUsage: "MOUNTPOINT PATH",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "ours", Usage: "keep the local state"},
					&cli.BoolFlag{Name: "theirs", Usage: "take what the store has"},
					&cli.BoolFlag{Name: "both", Usage: "take theirs, and keep ours beside it under another name"},
					&cli.StringFlag{Name: "file", Usage: "take the content of this `FILE`, - for standard input"},
				},
				Description: "What is not kept goes to the history.",
				Action:      resolveConflict,
			},
		},
	}
}

func listConflicts(c *cli.Context) error {
	args, err := wantArgs(c, 1, 1)
	if err != nil {
		return err
	}
	r, err := findMount(c, args[0])
	if err != nil {
		return err
	}
	res, err := control.NewClient(r.SocketPath()).Conflicts(c.Context)
	if err != nil {
		return err
	}
	printNotes(c, res.Notes)
	return show(c, res, printConflicts)
}

func printConflicts(w io.Writer, res control.ConflictsResult) {
	if len(res.Conflicts) == 0 {
		fmt.Fprintln(w, "no conflicts")
	}
	for _, x := range res.Conflicts {
		since := "?"
		if !x.Since.IsZero() && x.Since.Unix() > 0 {
			since = age(x.Since, time.Now())
		}
		fmt.Fprintf(w, "%4s  %s\n", since, oneLine(x.Path))
		screen.Of(w).Wrapped("      ", 6, oneLine(x.Reason))
	}
}

var conflictSides = []string{"base", "ours", "theirs"}

func showConflict(c *cli.Context) error {
	args, err := wantArgs(c, 2, 2)
	if err != nil {
		return err
	}
	side := c.String("side")
	if !slices.Contains(conflictSides, side) {
		return exit.New(exit.Usage, "--side %q is none", oneLine(side)).
			Hint("%s", orNothing(suggest.Phrase(side, conflictSides), "base, ours or theirs"))
	}
	r, rel, err := wanted(c, args)
	if err != nil {
		return err
	}
	body, err := control.NewClient(r.SocketPath()).ConflictContent(c.Context, rel, side)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(c.App.Writer, body); err != nil {
		return exit.New(exit.Failed, "%w", err).Hint("what was printed is not the whole of it")
	}
	return nil
}

func resolveConflict(c *cli.Context) error {
	args, err := wantArgs(c, 2, 2)
	if err != nil {
		return err
	}
	keep, err := wantedSide(c)
	if err != nil {
		return err
	}
	var content io.Reader
	if keep == control.KeepContent {
		f, err := openContent(c.String("file"))
		if err != nil {
			return err
		}
		defer f.Close()
		content = f
	}
	r, rel, err := wanted(c, args)
	if err != nil {
		return err
	}
	res, err := control.NewClient(r.SocketPath()).Resolve(c.Context, control.ResolveRequest{Path: rel, Keep: keep}, content)
	if err != nil || !c.Bool("json") {
		return err
	}
	return printJSON(c.App.Writer, res)
}

// wantedSide returns the one flag that names the side to keep.
func wantedSide(c *cli.Context) (keep string, err error) {
	var given []string
	for _, name := range []string{control.KeepOurs, control.KeepTheirs, control.KeepBoth} {
		if c.Bool(name) {
			given = append(given, name)
		}
	}
	if c.IsSet("file") {
		given = append(given, control.KeepContent)
	}
	if len(given) != 1 {
		return "", exit.New(exit.Usage, "one of --ours, --theirs, --both and --file is needed, %d given", len(given)).
			Hint("`wsmount conflicts show` prints what each side has")
	}
	return given[0], nil
}

func openContent(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, exit.New(exit.Usage, "--file: %w", err).Hint("give a file that you may read")
	}
	if fi, err := f.Stat(); err == nil && !fi.Mode().IsRegular() {
		f.Close()
		return nil, exit.New(exit.Usage, "--file: %s is not a file", oneLine(name)).Hint("- reads standard input")
	}
	return f, nil
}
