// Package completion writes the scripts with which bash, zsh and fish complete command
// lines of wsmount: commands, flags, addresses of workspaces, and file names.
package completion

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Command is one that can be run, or one that has subcommands.
type Command struct {
	Name         string // with its parent's: "registry add"
	Summary      string
	Subcommands  []string
	TakesAddress bool // an argument may be the address of a workspace
	Flags        []Flag
}

// A Flag of a command.
type Flag struct {
	Names      []string // as they are typed
	Usage      string
	TakesValue bool
}

// addresses is a substitution that lists what can be mounted.
const addresses = "(wsmount list --quiet 2>/dev/null)"

// Bash writes the script for bash.
func Bash(w io.Writer, commands []Command) error {
	var cases, nested strings.Builder
	var names, values []string
	for _, c := range commands {
		words := slices.Concat([]string{"--help"}, c.Subcommands)
		for _, f := range c.Flags {
			words = append(words, f.Names...)
			if f.TakesValue {
				values = append(values, f.Names...)
			}
		}
		slices.Sort(words)
		if strings.Contains(c.Name, " ") {
			fmt.Fprintf(&nested, "|%q", c.Name)
		} else {
			names = append(names, c.Name)
		}
		known := ""
		if c.TakesAddress {
			known = "; [[ $cur ]] || words+=\" $(wsmount list --quiet 2>/dev/null)\""
		}
		fmt.Fprintf(&cases, "        %q) words=%q%s ;;\n", c.Name, strings.Join(words, " "), known)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	// The word after a flag that takes a value is neither a command nor a
	// workspace. "wsmount WORKSPACE MOUNTPOINT" means mount, as the program reads it.
	_, err := fmt.Fprintf(w, `_wsmount() {
    local cur=${COMP_WORDS[COMP_CWORD]} command= words= w last=
    local line=${COMP_LINE:0:COMP_POINT}
    if [[ ${line##*[[:space:]]} == @* ]]; then
        COMPREPLY=($(compgen -W "$(wsmount list --quiet 2>/dev/null)" -- "${line##*[[:space:]]}"))
        [[ ${COMP_WORDBREAKS-} == *@* ]] && COMPREPLY=("${COMPREPLY[@]#@}") # to bash, the @ is a word of its own
        return
    fi
    for w in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
        case "$last" in
            %s) last=; continue ;;
        esac
        last=$w
        case "$command $w" in
            " "[@/.]*|" "*WORKSPACE.md) command=mount ;;
            " "[a-z]*%s) command="${command:+$command }$w" ;;
        esac
    done
    case "$command" in
        "") words=%q ;;
%s    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    [[ $cur != -* && -n $command ]] && COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -o filenames -F _wsmount wsmount
`, strings.Join(values, "|"), nested.String(), strings.Join(names, " ")+" --help --version", cases.String())
	return err
}

// Zsh writes the script for zsh: it lets zsh run bash's. Where the script lies as _wsmount among the
// shell's functions, zsh runs it as that function at the first question, which it
// has to answer then.
func Zsh(w io.Writer, commands []Command) error {
	fmt.Fprintln(w, "#compdef wsmount\nautoload -U +X bashcompinit && bashcompinit")
	err := Bash(w, commands)
	fmt.Fprintln(w, `[[ ${funcstack[1]-} != _wsmount ]] || _bash_complete -o filenames -F _wsmount`)
	return err
}

// Fish writes the script for fish.
func Fish(w io.Writer, commands []Command) error {
	fmt.Fprintln(w, "complete -c wsmount -n __fish_use_subcommand -l version -d 'say which wsmount this is'")
	fmt.Fprintf(w, "complete -c wsmount -n __fish_use_subcommand -a '%s'\n", addresses)
	for _, c := range commands {
		words := strings.Fields(c.Name)
		last := len(words) - 1
		when := "__fish_use_subcommand"
		if last > 0 {
			when = fishSeen(words[:last])
		}
		fmt.Fprintf(w, "complete -c wsmount -n '%s' -a %s -d '%s'\n", when, words[last], fishQuote(c.Summary))
		if c.TakesAddress {
			fmt.Fprintf(w, "complete -c wsmount -n '%s' -a '%s'\n", fishSeen(words), addresses)
		}
		for _, f := range c.Flags {
			fmt.Fprintf(w, "complete -c wsmount -n '%s'%s -d '%s'\n", fishSeen(words), fishFlag(f), fishQuote(f.Usage))
		}
	}
	return nil
}

// fishSeen is the condition that all of these words were typed.
func fishSeen(words []string) string {
	return "__fish_seen_subcommand_from " + strings.Join(words, "; and __fish_seen_subcommand_from ")
}

func fishFlag(f Flag) string {
	var out strings.Builder
	for _, n := range f.Names {
		if name, long := strings.CutPrefix(n, "--"); long {
			out.WriteString(" -l " + name)
		} else {
			out.WriteString(" -s " + n[1:])
		}
	}
	if f.TakesValue {
		out.WriteString(" -r")
	}
	return out.String()
}

func fishQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)
}
