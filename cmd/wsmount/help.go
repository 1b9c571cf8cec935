package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manual"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
	"github.com/wsmount/wsmount/mountspec/reference"
)

// pageWidth is the width of help: the terminal's, or 80.
func pageWidth(w io.Writer) int { return cmp.Or(screen.Of(w).Width, 80) }

const programHelp = `wsmount mounts a declared workspace as a directory: it reads its WORKSPACE.md,
finds where the files live, and serves them under the policy that the manifest
states and this host grants.`

func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "say how a command is used",
		ArgsUsage: "[COMMAND ... | config | manifest]",
		Description: "Says the same as COMMAND --help. `config` is about the host configuration, wsmount.yaml(5), and `manifest` about " +
			"WORKSPACE.md, STORAGE.md and the others, wsmount-manifest(5): each key with an example. With --man it prints a manual page.\n\n" +
			"  wsmount help config\n" +
			"  wsmount help --man | man -l -\n" +
			"  wsmount help --html manifest > manifest.html",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "man", Usage: "print the manual page of the whole program, of config or of manifest, for man(1)"},
			&cli.BoolFlag{Name: "html", Usage: "print config or manifest for a browser"},
		},
		Action: func(c *cli.Context) error {
			version, epoch := readVersion().Version, os.Getenv("SOURCE_DATE_EPOCH")
			if name := c.Args().First(); c.NArg() == 1 && slices.Contains(reference.Names(), name) {
				page, err := reference.Find(name, daemon.MountableProviders())
				if err != nil {
					return err
				}
				return manual.Reference{Version: version, Epoch: epoch, Page: page}.Print(c.App.Writer, c.Bool("man"), c.Bool("html"), pageWidth(c.App.Writer))
			}
			if c.Bool("html") {
				return exit.New(exit.Usage, "--html is for config and manifest").Hint("wsmount help --html config")
			}
			if c.Bool("man") {
				if _, err := wantArgs(c, 0, 0); err != nil {
					return err
				}
				return manualPage(version, epoch).Print(c.App.Writer)
			}
			in := invocation{args: c.Args().Slice()}
			all := commands()
			in.findCommand(all)
			if leaf := in.leaf(); len(in.args) > 0 && (leaf == nil || len(leaf.Subcommands) > 0) {
				return in.unknownCommand(all)
			}
			return in.printHelp(c.App.Writer)
		},
	}
}

// manualPage is the content of the manual that comes from the commands.
func manualPage(version, epoch string) manual.Page {
	p := manual.Page{Version: version, Epoch: epoch, Description: programHelp, CommonFlags: flagItems(commonFlags())}
	eachCommand("", commands(), func(name string, c *cli.Command) {
		if len(c.Subcommands) == 0 {
			p.Commands = append(p.Commands, manual.Command{Synopsis: strings.TrimSpace("wsmount " + name + " " + c.ArgsUsage),
				Summary: c.Usage, Description: c.Description, Flags: flagItems(c.Flags[:len(c.Flags)-len(commonFlags())])})
		}
	})
	for code, e := range exitCodes {
		p.ExitStatus = append(p.ExitStatus, manual.Item{Tag: strconv.Itoa(code), Text: e.long})
	}
	return p
}

func flagItems(flags []cli.Flag) (list []manual.Item) {
	for _, f := range flags {
		names, value, usage := describeFlag(f.(cli.DocGenerationFlag))
		list = append(list, manual.Item{Tag: strings.Join(names, ", "), Value: value, Text: usage})
	}
	return list
}

// printHelp writes the help of the program or of a command.
func (in *invocation) printHelp(w io.Writer) error {
	c := in.leaf()
	if c == nil {
		printProgramHelp(w)
		return nil
	}
	width := pageWidth(w)
	fmt.Fprintf(w, "%s\n", wrap.Text(in.path()+" - "+c.Usage, 0, width))
	parent := strings.TrimSuffix(in.path(), c.Name)
	if len(c.Subcommands) > 0 {
		for _, s := range c.Subcommands {
			fmt.Fprintf(w, "  %s%s\n%s", parent, strings.TrimSpace(c.Name+" "+s.Name+" "+s.ArgsUsage), wrap.Text(s.Usage, 6, width))
		}
		return nil
	}
	fmt.Fprintf(w, "%s\n", wrap.Text(strings.TrimSpace(parent+c.Name+" "+c.ArgsUsage), 2, width))
	if c.Description != "" {
		fmt.Fprintf(w, "%s\n", wrap.Text(c.Description, 0, width))
	}
	fmt.Fprintf(w, "Flags, anywhere before --:\n")
	for _, f := range c.Flags {
		printFlag(w, f.(cli.DocGenerationFlag))
	}
	return nil
}

func printProgramHelp(w io.Writer) {
	width := pageWidth(w)
	fmt.Fprintf(w, "%s\n  wsmount WORKSPACE MOUNTPOINT\n  wsmount COMMAND ...\n\n", wrap.Text(programHelp, 0, width))
	for _, c := range commands() {
		screen.Screen{Writer: w, Width: width}.Wrapped(fmt.Sprintf("  %-11s ", c.Name), 14, c.Usage)
	}
	fmt.Fprintf(w, "\n%s", wrap.Text("`wsmount COMMAND --help` tells more of one, `wsmount help config` and `wsmount help manifest` of the files. Flags may stand anywhere before --.", 0, width))
	var codes []string
	for code, e := range exitCodes {
		codes = append(codes, fmt.Sprintf("%d %s", code, e.short))
	}
	fmt.Fprint(w, wrap.Text("Exit codes: "+strings.Join(codes, ", ")+".", 0, width))
}

// exitCodes describe each exit code, shortly and for the manual.
var exitCodes = [...]struct{ short, long string }{
	exit.Done:         {"done", "What was asked for is done."},
	exit.Failed:       {"failed", "It failed for a reason that no other code names; a mount that is in use, for one."},
	exit.Usage:        {"usage", "The command line is wrong."},
	exit.Manifest:     {"manifest invalid", "A manifest or the host configuration is invalid."},
	exit.Unresolvable: {"unresolvable", "An address, a reference or a mount does not lead anywhere."},
	exit.Denied:       {"not granted", "Authentication failed, or the host configuration does not grant it."},
	exit.Unreachable:  {"store unreachable", "The store does not answer."},
	exit.Unsafe:       {"not safe yet", "Something that the policy wanted sent is not safe in the store yet. It is kept in the working copy, and `wsmount recover` lists it."},
	exit.Conflict:     {"conflict", "The store and the working copy went apart; `wsmount conflicts` tells of it."},
}

// describeFlag returns the names of a flag as they are typed, the name of its
// value, and its usage.
func describeFlag(f cli.DocGenerationFlag) (names []string, value, usage string) {
	usage = f.GetUsage()
	if before, rest, ok := strings.Cut(usage, "`"); ok {
		name, after, _ := strings.Cut(rest, "`")
		value, usage = name, before+name+after
	}
	for _, n := range f.(cli.Flag).Names() {
		names = append(names, dashed(n))
	}
	if env := f.GetEnvVars(); len(env) > 0 {
		usage += " ($" + strings.Join(env, ", $") + ")"
	}
	if d := f.GetDefaultText(); d != "" && d != "false" && d != `""` && f.TakesValue() {
		usage += " (default " + d + ")"
	}
	return names, value, usage
}

// printFlag writes "--name VALUE" and, in a column of its own, its usage.
func printFlag(w io.Writer, f cli.DocGenerationFlag) {
	names, value, usage := describeFlag(f)
	head := "  " + strings.TrimSpace(strings.Join(names, ", ")+" "+value)
	column, width := 28, pageWidth(w)
	if width < 60 {
		column = 6
	}
	text := wrap.Text(usage, column, width)
	if len(head) < column-1 {
		text = head + text[len(head):]
	} else {
		text = head + "\n" + text
	}
	fmt.Fprint(w, text)
}

// synopsis is a command's name, with its parent's, and its arguments.
func synopsis(c *cli.Command) string {
	name := c.Name
	if c.HelpName != "" {
		name = strings.TrimPrefix(c.HelpName, "wsmount ")
	}
	return strings.TrimSpace(name + " " + c.ArgsUsage)
}
