package main

import (
	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
)

func commitCommand() *cli.Command {
	return &cli.Command{
		Name:      "commit",
		Usage:     "send what has changed",
		ArgsUsage: "MOUNTPOINT",
		Description: "Sends every change that the stores of a mount do not have, and returns when they have it " +
			"or it is held back. Files that a program is writing are left for later.\n\n" +
			"  wsmount commit /mnt/ws -m 'the draft, with figures'",
		Flags: append(syncFlags(), confirmFlag(),
			&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "`TEXT` of the commit, where the store has such a thing; otherwise the manifest's template"}),
		Action: func(c *cli.Context) error { return syncNow(c, control.VerbCommit) },
	}
}
