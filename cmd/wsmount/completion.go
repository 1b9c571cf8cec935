package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/completion"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
)

var shells = []string{"bash", "zsh", "fish"}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish",
		ArgsUsage: "SHELL",
		Description: "The script completes commands, flags, addresses of workspaces and file names.\n\n" +
			"  source <(wsmount completion bash)\n" +
			"  source <(wsmount completion zsh)\n" +
			"  wsmount completion fish | source",
		Action: func(c *cli.Context) error {
			args, err := wantArgs(c, 1, 1)
			if err != nil {
				return err
			}
			switch args[0] {
			case "bash":
				return completion.Bash(c.App.Writer, completed())
			case "zsh":
				return completion.Zsh(c.App.Writer, completed())
			case "fish":
				return completion.Fish(c.App.Writer, completed())
			}
			return exit.New(exit.Usage, "no completion for %q", oneLine(args[0])).
				Hint("%s", orNothing(suggest.Phrase(args[0], shells), "one of bash, zsh, fish"))
		},
	}
}

// completed is what the scripts know of the commands.
func completed() (list []completion.Command) {
	eachCommand("", commands(), func(name string, c *cli.Command) {
		out := completion.Command{Name: name, Summary: c.Usage,
			TakesAddress: strings.Contains(c.ArgsUsage, "ADDRESS") || strings.Contains(c.ArgsUsage, "WORKSPACE")}
		for _, s := range c.Subcommands {
			out.Subcommands = append(out.Subcommands, s.Name)
		}
		for _, f := range c.Flags {
			about := f.(cli.DocGenerationFlag)
			names, _, _ := describeFlag(about)
			out.Flags = append(out.Flags, completion.Flag{Names: names, Usage: strings.ReplaceAll(about.GetUsage(), "`", ""), TakesValue: about.TakesValue()})
		}
		list = append(list, out)
	})
	return list
}

// eachCommand calls f for every command that can be run, with its full name.
func eachCommand(prefix string, commands []*cli.Command, f func(name string, c *cli.Command)) {
	for _, c := range commands {
		name := strings.TrimSpace(prefix + " " + c.Name)
		f(name, c)
		eachCommand(name, c.Subcommands, f)
	}
}
