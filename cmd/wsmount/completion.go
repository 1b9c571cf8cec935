package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/suggest"
)

var shells = []string{"bash", "zsh", "fish"}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish",
		ArgsUsage: "SHELL",
		Description: "The script completes commands, flags and file names.\n\n" +
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
				return bashCompletion(c.App.Writer)
			case "zsh":
				return zshCompletion(c.App.Writer)
			case "fish":
				return fishCompletion(c.App.Writer)
			}
			return exit.New(exit.Usage, "no completion for %q", oneLine(args[0])).
				Hint("%s", orNothing(suggest.Phrase(args[0], shells), "one of bash, zsh, fish"))
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

func flagWords(c *cli.Command) []string {
	words := []string{"--help"}
	for _, f := range c.Flags {
		for _, n := range f.Names() {
			words = append(words, dashed(n))
		}
	}
	slices.Sort(words)
	return words
}

func bashCompletion(w io.Writer) error {
	var cases strings.Builder
	var names, values []string
	for name, takes := range flagKinds(commands()) {
		if takes {
			values = append(values, dashed(name))
		}
	}
	slices.Sort(values)
	eachCommand("", commands(), func(name string, c *cli.Command) {
		words := flagWords(c)
		for _, s := range c.Subcommands {
			words = append(words, s.Name)
		}
		if !strings.Contains(name, " ") {
			names = append(names, name)
		}
		fmt.Fprintf(&cases, "        %q) words=%q ;;\n", name, strings.Join(words, " "))
	})
	// The word after a flag that takes a value is neither a command nor a
	// workspace. "wsmount WORKSPACE MOUNTPOINT" means mount, as in findCommand.
	_, err := fmt.Fprintf(w, `_wsmount() {
    local cur=${COMP_WORDS[COMP_CWORD]} command= words= w last=
    for w in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
        case "$last" in
            %s) last=; continue ;;
        esac
        last=$w
        case "$command $w" in
            " "[@/.]*|" "*WORKSPACE.md) command=mount ;;
            " "[a-z]*|"registry "[a-z]*|"conflicts "[a-z]*|"cache "[a-z]*) command="${command:+$command }$w" ;;
        esac
    done
    case "$command" in
        "") words=%q ;;
%s    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    [[ $cur != -* && -n $command ]] && COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -o filenames -F _wsmount wsmount
`, strings.Join(values, "|"), strings.Join(names, " ")+" --help --version", cases.String())
	return err
}

// zshCompletion lets zsh run bash's. Where the script lies as _wsmount among the
// shell's functions, zsh runs it as that function at the first question, which it
// has to answer then.
func zshCompletion(w io.Writer) error {
	fmt.Fprintln(w, "#compdef wsmount\nautoload -U +X bashcompinit && bashcompinit")
	err := bashCompletion(w)
	fmt.Fprintln(w, `[[ ${funcstack[1]-} != _wsmount ]] || _bash_complete -o filenames -F _wsmount`)
	return err
}

func fishCompletion(w io.Writer) error {
	fmt.Fprintln(w, "complete -c wsmount -n __fish_use_subcommand -l version -d 'say which wsmount this is'")
	eachCommand("", commands(), func(name string, c *cli.Command) {
		parent, last, nested := strings.Cut(name, " ")
		when := "__fish_use_subcommand"
		if nested {
			when = "__fish_seen_subcommand_from " + parent
		} else {
			last = parent
		}
		fmt.Fprintf(w, "complete -c wsmount -n '%s' -a %s -d '%s'\n", when, last, fishQuote(c.Usage))
		for _, f := range c.Flags {
			fmt.Fprintf(w, "complete -c wsmount -n '__fish_seen_subcommand_from %s'%s -d '%s'\n", last, fishFlag(f),
				fishQuote(strings.ReplaceAll(f.(cli.DocGenerationFlag).GetUsage(), "`", "")))
		}
	})
	return nil
}

func fishFlag(f cli.Flag) string {
	var out strings.Builder
	for _, n := range f.Names() {
		if len(n) == 1 {
			out.WriteString(" -s " + n)
		} else {
			out.WriteString(" -l " + n)
		}
	}
	if f.(cli.DocGenerationFlag).TakesValue() {
		out.WriteString(" -r")
	}
	return out.String()
}

func fishQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)
}
