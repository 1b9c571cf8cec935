package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/completion"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/setup"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/reference"
)

var shells = []string{"bash", "zsh", "fish"}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish",
		ArgsUsage: "SHELL | words LINE",
		Description: "The script completes commands, flags and their values, addresses of workspaces, mount points, events, and paths " +
			"in a mount, those of its history too. `words LINE` is what the script asks: a line for each word that may stand at the end of LINE.\n\n" +
			"  source <(wsmount completion bash)\n" +
			"  source <(wsmount completion zsh)\n" +
			"  wsmount completion fish | source",
		Action: func(c *cli.Context) error {
			need := 1
			if c.Args().First() == "words" {
				need = 2
			}
			args, err := wantArgs(c, need, need)
			if err != nil {
				return err
			}
			switch args[0] {
			case "words":
				completion.Complete(args[1], completed(), sources(c)).Print(c.App.Writer)
				return nil
			case "bash":
				return completion.Bash(c.App.Writer)
			case "zsh":
				return completion.Zsh(c.App.Writer)
			case "fish":
				return completion.Fish(c.App.Writer)
			}
			return exit.New(exit.Usage, "no completion for %q", oneLine(args[0])).
				Hint("%s", orNothing(suggest.Phrase(args[0], shells), "one of bash, zsh, fish"))
		},
	}
}

// completed lists the commands for completion.
func completed() (list []completion.Command) {
	eachCommand("", commands(), func(name string, c *cli.Command) {
		out := completion.Command{Name: name, Summary: c.Usage, Args: c.ArgsUsage}
		for _, s := range c.Subcommands {
			out.Subcommands = append(out.Subcommands, s.Name)
		}
		for _, f := range c.Flags {
			about := f.(cli.DocGenerationFlag)
			names, value, _ := describeFlag(about)
			out.Flags = append(out.Flags, completion.Flag{Names: names, Usage: strings.ReplaceAll(about.GetUsage(), "`", ""), TakesValue: about.TakesValue(), Value: value})
		}
		list = append(list, out)
	})
	return list
}

// sources are the words that this host knows. A source that fails offers none.
func sources(c *cli.Context) completion.Sources {
	states := []string{"turn:", "conversation:", "commit:"}
	for _, name := range lifecycle.Names() {
		states = append(states, "event:"+name)
	}
	return completion.Sources{
		Words: map[string][]string{"SHELL": shells, "EVENT": lifecycle.Names(), "SIDE": conflictSides, "STATE": states, "FROM": states, "TO": states,
			"MANIFEST": reference.Schemas(),
			"LEVEL":    {"debug", "info", "warn", "error"}, "FORMAT": {"text", "json"}, "PROVIDER": append(setup.Providers(), mountspec.ProviderLocalFS, mountspec.ProviderDevLocal)},
		Addresses: func() (list []string) {
			known, _ := askHost(c, false, func(r *host.Resolver) (known []host.Known, err error) {
				known, _, err = r.Enumerate(c.Context)
				return known, err
			})
			for _, k := range known {
				if k.Address.Owner != "" {
					list = append(list, k.Address.String())
				}
			}
			return list
		},
		Mounts: func() (list []string) {
			records, _ := allMounts(c)
			for _, r := range records {
				list = append(list, r.Mountpoint)
			}
			return list
		},
		Paths: func(mount, begins string) []string {
			root, err := stateRoot(c)
			if err != nil {
				return nil
			}
			return mounts.Paths(c.Context, root, mount, begins)
		},
	}
}

// eachCommand calls f for every command that can be run, with its full name.
func eachCommand(prefix string, commands []*cli.Command, f func(name string, c *cli.Command)) {
	for _, c := range commands {
		name := strings.TrimSpace(prefix + " " + c.Name)
		f(name, c)
		eachCommand(name, c.Subcommands, f)
	}
}
