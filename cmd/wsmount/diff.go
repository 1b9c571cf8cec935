package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two versions of a file",
		ArgsUsage: "MOUNTPOINT PATH [FROM [TO]]",
		Description: "Prints a unified diff from one version of a file to another, which `wsmount log` names. " +
			"Without TO it is the file as it is now, without FROM the version before that. Prints nothing " +
			"when they are equal.\n\n" +
			"  wsmount diff /mnt/ws docs/plan.md\n" +
			"  wsmount diff /mnt/ws docs/plan.md 12 17",
		Action: diffAction,
	}
}

func diffAction(c *cli.Context) error {
	args, err := wantArgs(c, 2, 4)
	if err != nil {
		return err
	}
	r, rel, err := wanted(c, args[:2])
	if err != nil {
		return err
	}
	req := control.DiffRequest{Path: rel}
	if len(args) > 2 {
		req.From = args[2]
	}
	if len(args) > 3 {
		req.To = args[3]
	}
	res, err := control.NewClient(r.SocketPath()).Diff(c.Context, req)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(c.App.Writer, res)
	}
	_, err = fmt.Fprint(c.App.Writer, res.Diff)
	return err
}
