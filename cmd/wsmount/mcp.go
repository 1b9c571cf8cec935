package main

import (
	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/mcp"
)

func mcpCommand() *cli.Command {
	return &cli.Command{
		Name:      "mcp",
		Usage:     "give an agent a mount's status, history and events as MCP tools",
		ArgsUsage: "MOUNTPOINT",
		Description: "Speaks the Model Context Protocol on standard input and output, for a program that runs agents to start: " +
			"the tools status, errors (why the last operations failed), log, diff, conflicts, restore and event. They answer and refuse what " +
			"the commands of the same names do, and name no place of the host but the mount point. Diffs and lists are bounded, and say so. " +
			"When the workspace is unmounted the tools say so too, until it is mounted there again; another one that is mounted " +
			"there is not spoken of. It ends with its input.\n\n" +
			"  {\"mcpServers\": {\"ws\": {\"command\": \"wsmount\", \"args\": [\"mcp\", \"/mnt/ws\"]}}}",
		Action: func(c *cli.Context) error {
			args, err := wantArgs(c, 1, 1)
			if err != nil {
				return err
			}
			root, err := stateRoot(c)
			if err != nil {
				return err
			}
			mount, err := mcp.At(root, args[0])
			if err != nil {
				return err
			}
			return mcp.Serve(c.Context, mount, readVersion().Version)
		},
	}
}
