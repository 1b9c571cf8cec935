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

func commitCommand() *cli.Command {
	return &cli.Command{
		Name:      "commit",
		Usage:     "send what has changed",
		ArgsUsage: "MOUNTPOINT",
		Description: "Sends every change that the stores of a mount do not have, and returns when they have it " +
			"or it is held back; where each commit is pushed, also when that is done. Files that a program is writing are left for later.\n\n" +
			"  wsmount commit /mnt/ws -m 'the draft, with figures'",
		Flags: append(syncFlags(), confirmFlag(),
			&cli.BoolFlag{Name: "no-wait", Usage: "return before the push that policy ties to each commit"},
			&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "`TEXT` of the commit, where the store has such a thing; otherwise the manifest's template"}),
		Action: func(c *cli.Context) error { return syncNow(c, control.VerbCommit) },
	}
}

func pushCommand() *cli.Command {
	return &cli.Command{
		Name:      "push",
		Usage:     "send commits on to where others see them",
		ArgsUsage: "MOUNTPOINT",
		Description: "Sends what was committed to the remote of a workspace that has one. What others " +
			"pushed before is pulled first. Changes that are not committed stay. With --pr finds or opens a " +
			"pull request from the branch of the conversation or turn, where the workspace's policy has such branches.",
		Flags:  append(syncFlags(), &cli.BoolFlag{Name: "pr", Usage: "find or open a pull request too"}),
		Action: func(c *cli.Context) error { return syncNow(c, control.VerbPush) },
	}
}
