package main

import (
	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/mountspec/reference"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON Schema of a manifest or configuration", ArgsUsage: "MANIFEST|config",
		Description: "MANIFEST is workspace, storage, secrets, sandbox, code, policy or identity. The schema is of its frontmatter, made of what " +
			"this wsmount reads: whatever `wsmount validate` accepts is valid by it. What texts mean, and what depends on " +
			"several of them or on the host, only `wsmount validate` knows.\n\n" +
			"An editor with yaml-language-server shows what each key of a host configuration does, if its first line is\n\n" +
			"  # yaml-language-server: $schema=/PATH/config.schema.json\n\n" +
			"  wsmount schema workspace > workspace.schema.json\n\n" +
			"In VS Code the extension unifiedjs.vscode-remark shows what is not valid, once these two stand beside the manifest: what " +
			"npm installs, and the file .remarkrc.mjs:\n\n" +
			"  npm install remark-frontmatter remark-lint-frontmatter-schema\n\n" +
			"  import frontmatter from 'remark-frontmatter'\n" +
			"  import schema from 'remark-lint-frontmatter-schema'\n" +
			"  const schemas = { './workspace.schema.json': ['./WORKSPACE.md'] }\n" +
			"  export default { plugins: [frontmatter, [schema, { schemas }]] }",
		Action: func(c *cli.Context) error {
			args, err := wantArgs(c, 1, 1)
			if err != nil {
				return err
			}
			text, err := reference.Schema(args[0], daemon.MountableProviders())
			if err != nil {
				return exit.New(exit.Usage, "%w", err).Hint("%s", orNothing(suggest.Phrase(args[0], reference.Schemas()), "see `wsmount schema --help`"))
			}
			_, err = c.App.Writer.Write(text)
			return err
		},
	}
}
