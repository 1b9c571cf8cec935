package main

import (
	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
)

func pullCommand() *cli.Command {
	return &cli.Command{
		Name:      "pull",
		Usage:     "bring what others have changed",
		ArgsUsage: "MOUNTPOINT",
		Description: "Asks the stores of a mount now, whatever the policy's time for it. A synchronised " +
			"workspace that holds changes is left alone: commit them first. Fails when a pull was put off.",
		Flags:  append(syncFlags(), confirmFlag()),
		Action: func(c *cli.Context) error { return syncNow(c, control.VerbPull) },
	}
}
