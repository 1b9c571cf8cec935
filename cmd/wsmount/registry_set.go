package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/rowedit"
)

func registrySetCommand() *cli.Command {
	return &cli.Command{
		Name: "set", Usage: "change what the host configuration says of a workspace", ArgsUsage: "ADDRESS KEY=VALUE...", Action: registrySet,
		Description: "Changes the entry of ADDRESS in the host configuration, and its WORKSPACE.md if it has one, and prints the " +
			"difference; there is nothing to accept then. Comments, order and the text below the manifest stay.\n\n" +
			"KEY is one of " + strings.Join(rowedit.Keys(), ", ") + ". VALUE is a text, or YAML for what is more than a text; an empty one takes the key out.\n\n" +
			"  wsmount registry set @acme/notes 'name=Our notes' 'tags=[ a, b ]'",
		Flags: changeFlags(),
	}
}

func registrySet(c *cli.Context) error {
	args, err := wantArgs(c, 2, 1+len(rowedit.Keys()))
	if err != nil {
		return err
	}
	a, err := readAddress(args[0], "`wsmount registry list` shows the addresses")
	if err != nil {
		return err
	}
	values, err := rowedit.Parse(args[1:])
	if err != nil {
		return exit.New(exit.Usage, "%w", err).Hint("what can be set is %s", strings.Join(rowedit.Keys(), ", "))
	}
	return record(c, nil, func(r *host.Resolver, confirm func(host.Change) bool) (host.Change, error) {
		return r.Set(c.Context, a, values, confirm)
	})
}
