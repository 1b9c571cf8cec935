package main

import (
	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/mountspec"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON Schema of a manifest, for editors", ArgsUsage: "MANIFEST",
		Description: "MANIFEST is workspace, storage, secrets, sandbox, code, policy or identity. The schema is of its frontmatter, made of what " +
			"this wsmount reads: whatever `wsmount validate` accepts is valid by it. What texts mean, and what depends on " +
			"several of them or on the host, only `wsmount validate` knows.\n\n" +
			"  wsmount schema workspace > ~/.config/wsmount.workspace.schema.json",
		Action: func(c *cli.Context) error {
			args, err := wantArgs(c, 1, 1)
			if err != nil {
				return err
			}
			text, err := mountspec.Schema(args[0], daemon.MountableProviders()...)
			if err != nil {
				return exit.New(exit.Usage, "%w", err).Hint("%s", orNothing(suggest.Phrase(args[0], mountspec.Schemas()), "see `wsmount schema --help`"))
			}
			_, err = c.App.Writer.Write(text)
			return err
		},
	}
}
