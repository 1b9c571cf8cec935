package main

import (
	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/control"
)

func pushCommand() *cli.Command {
	return &cli.Command{
		Name:      "push",
		Usage:     "send commits on to where others see them",
		ArgsUsage: "MOUNTPOINT",
		Description: "Sends what was committed to the remote of a workspace that has one. What others " +
			"pushed before comes here first. Changes that are not committed stay. With --pr finds or opens a " +
			"pull request from the branch of the conversation or turn, where the workspace's policy has such branches.",
		Flags:  append(syncFlags(), &cli.BoolFlag{Name: "pr", Usage: "find or open a pull request too"}),
		Action: func(c *cli.Context) error { return syncNow(c, control.VerbPush) },
	}
}
