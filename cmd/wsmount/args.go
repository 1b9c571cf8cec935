package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
)

// An invocation is a parsed command line: its command, flags and arguments.
//
// The library stops looking for flags at the first argument, so that `wsmount @a/b
// /mnt --read-only` would mount read-write and say nothing. With invocation a flag
// may stand anywhere before "--", and a word that begins with a dash is a flag or
// an error, never an argument.
type invocation struct {
	command []*cli.Command // from the outermost; empty for the program itself
	flags   []string       // each in one piece: --name or --name=value
	args    []string
	help    bool
	version bool
}

// flagKinds says for every flag name of any command whether it takes a value. One
// name means the same kind everywhere, so a flag may come before its command.
func flagKinds(commands []*cli.Command) map[string]bool {
	kinds := map[string]bool{}
	for _, c := range commands {
		for _, f := range c.Flags {
			takes := f.(cli.DocGenerationFlag).TakesValue()
			for _, name := range f.Names() {
				kinds[name] = takes
			}
		}
		for name, takes := range flagKinds(c.Subcommands) {
			kinds[name] = takes
		}
	}
	return kinds
}

// parseArgs parses the words after the program's name. kinds is flagKinds of all commands.
func parseArgs(commands []*cli.Command, kinds map[string]bool, words []string) (invocation, error) {
	var in invocation
	var unknown []string
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--":
			in.args, words = append(in.args, words...), nil
		case !strings.HasPrefix(word, "-"):
			in.args = append(in.args, word)
		case word == "-h", word == "--help":
			in.help = true
		case word == "-v", word == "--version":
			in.version = true
		default:
			flag, used, err := readFlag(kinds, word, words)
			if err != nil {
				return in, err
			}
			if flag == "" {
				unknown = append(unknown, word)
				continue
			}
			in.flags, words = append(in.flags, flag), words[used:]
		}
	}
	in.findCommand(commands)
	if len(unknown) > 0 && !in.help {
		return in, in.unknownFlag(unknown[0])
	}
	return in, in.checkFlags()
}

// readFlag makes one piece of a flag and its value, which may be the next word.
// An unknown flag is an empty string.
func readFlag(kinds map[string]bool, word string, rest []string) (flag string, used int, err error) {
	name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
	takes, known := kinds[name]
	switch {
	case !known:
		return "", 0, nil
	case hasValue:
		return "--" + name + "=" + value, 0, nil
	case !takes:
		return "--" + name, 0, nil
	case len(rest) == 0 || rest[0] != "-" && strings.HasPrefix(rest[0], "-"): // a lone dash is standard output
		return "", 0, exit.New(exit.Usage, "%s needs a value", word).
			Hint("a value that begins with a dash is written %s=-...", dashed(name))
	}
	return "--" + name + "=" + rest[0], 1, nil
}

// findCommand takes the command's name, and that of its subcommand, from the
// arguments. `wsmount WORKSPACE MOUNTPOINT` means mount.
func (in *invocation) findCommand(commands []*cli.Command) {
	if len(in.args) > 0 && looksLikeWorkspace(in.args[0]) && lookup(commands, in.args[0]) == nil {
		in.command = []*cli.Command{lookup(commands, "mount")}
		return
	}
	for len(in.args) > 0 {
		c := lookup(commands, in.args[0])
		if c == nil {
			return
		}
		in.command, in.args, commands = append(in.command, c), in.args[1:], c.Subcommands
	}
}

func looksLikeWorkspace(arg string) bool {
	return strings.HasPrefix(arg, "@") || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, ".") ||
		strings.HasSuffix(arg, "WORKSPACE.md")
}

func lookup(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// leaf is the innermost command, or nil.
func (in *invocation) leaf() *cli.Command {
	if len(in.command) == 0 {
		return nil
	}
	return in.command[len(in.command)-1]
}

// path is the command as it is typed.
func (in *invocation) path() string {
	words := []string{"wsmount"}
	for _, c := range in.command {
		words = append(words, c.Name)
	}
	return strings.Join(words, " ")
}

// checkFlags refuses a flag of another command that this one does not have.
func (in *invocation) checkFlags() error {
	if in.leaf() == nil {
		return nil
	}
	for _, f := range in.flags {
		name, _, _ := strings.Cut(f[2:], "=")
		if _, ok := flagKinds([]*cli.Command{in.leaf()})[name]; !ok {
			return in.unknownFlag(f)
		}
	}
	return nil
}

func (in *invocation) unknownFlag(word string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if name == "" {
		return exit.New(exit.Usage, "%q is not an argument", word).Hint("put -- before arguments that begin with a dash")
	}
	var known []string
	if in.leaf() != nil {
		for n := range flagKinds([]*cli.Command{in.leaf()}) {
			known = append(known, n)
		}
	}
	err := exit.New(exit.Usage, "%s has no flag %s", in.path(), dashed(name))
	if near := suggest.Near(name, known); len(near) > 0 {
		return err.Hint("did you mean %s?", dashed(near[0]))
	}
	return err.Hint("see `%s --help`", in.path())
}

// dashed is a flag's name as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// words is the command line in the order that the library understands.
func (in *invocation) words() []string {
	out := []string{"wsmount"}
	for _, c := range in.command {
		out = append(out, c.Name)
	}
	return append(append(append(out, in.flags...), "--"), in.args...)
}
