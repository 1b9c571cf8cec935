// Package completion completes command lines of wsmount: commands, flags and their values,
// addresses of workspaces, mount points, events, and the paths of a mount.
//
// A shell's script hands over the line up to the cursor and shows the Answer of Complete, so
// that each shell completes the same. One use:
//
//	err := completion.Bash(os.Stdout)
//	completion.Complete(line, commands, sources).Print(os.Stdout)
package completion

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// A Command is one that can be run, or one that has subcommands.
type Command struct {
	Name        string // with its parent's: "registry add"
	Summary     string
	Args        string // as the help shows them: "MOUNTPOINT [PATH]"
	Subcommands []string
	Flags       []Flag
}

// A Flag of a command.
type Flag struct {
	Names      []string // as they are typed
	Usage      string
	TakesValue bool
	Value      string // the kind of its value, in capitals, as far as that is said
}

// Sources have the candidates for a word in capitals of a synopsis.
type Sources struct {
	Words             map[string][]string // EVENT, SIDE and others of which there are so many
	Addresses, Mounts func() []string
	Paths             func(mount, begins string) []string // in a mount; a directory ends with a slash
}

// A Word is a candidate for the last word of a line, as a whole.
type Word struct{ Text, About string }

// An Answer has the candidates for the last word of a line.
type Answer struct {
	Words []Word
	Files bool // names of files too
}

// Print writes a line for each word, of it and its description with a tab between, and an
// empty line where files may stand.
func (a Answer) Print(w io.Writer) {
	for _, word := range a.Words {
		fmt.Fprintf(w, "%s\t%s\n", word.Text, word.About)
	}
	if a.Files {
		fmt.Fprintln(w)
	}
}

// Complete has the candidates for the last word of a line, which ends at the cursor.
func Complete(line string, commands []Command, s Sources) Answer {
	words := split(line)
	if i := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == "wsmount" }); i >= 0 && i < len(words)-1 {
		words = words[i+1:] // after sudo and the like
	} else {
		words = words[min(1, len(words)-1):]
	}
	p := &parsed{Sources: s, commands: map[string]Command{}, flags: map[string]Flag{}}
	for _, c := range commands {
		p.commands[c.Name] = c
		for _, f := range c.Flags {
			for _, name := range f.Names {
				p.flags[name] = f
			}
		}
	}
	last := len(words) - 1
	for _, w := range words[:last] {
		p.take(w)
	}
	answer := p.complete(words[last])
	answer.Words = slices.DeleteFunc(answer.Words, func(w Word) bool {
		return !strings.HasPrefix(w.Text, words[last]) || strings.ContainsFunc(w.Text, unicode.IsControl)
	})
	slices.SortStableFunc(answer.Words, func(a, b Word) int { return strings.Compare(a.Text, b.Text) })
	answer.Words = slices.Compact(answer.Words)
	return answer
}

// parsed is a line as far as it was read.
type parsed struct {
	Sources
	commands map[string]Command
	flags    map[string]Flag
	command  string // "" until it was named
	args     []string
	flag     *Flag // whose value comes next
	rest     bool  // after --
}

func (p *parsed) take(w string) {
	_, parent := p.commands[strings.TrimSpace(p.command+" "+w)]
	switch {
	case p.flag != nil:
		p.flag = nil
	case p.rest:
		p.args = append(p.args, w)
	case w == "--":
		p.rest = true
	case strings.HasPrefix(w, "-"):
		if f, known := p.flags[w]; known && f.TakesValue {
			p.flag = &f
		}
	case len(p.args) == 0 && parent:
		p.command = strings.TrimSpace(p.command + " " + w)
	case p.command == "" && (strings.ContainsAny(w[:min(len(w), 1)], "@/.") || strings.HasSuffix(w, "WORKSPACE.md")):
		p.command, p.args = "mount", []string{w} // as the program reads it
	default:
		p.args = append(p.args, w)
	}
}

func (p *parsed) complete(w string) Answer {
	command, known := p.commands[p.command]
	name, value, assigned := strings.Cut(w, "=")
	switch {
	case p.flag != nil:
		return p.kind(p.flag.Value, w)
	case p.rest:
		return Answer{Files: true}
	case assigned && strings.HasPrefix(name, "-"):
		answer := p.kind(p.flags[name].Value, value)
		for i := range answer.Words {
			answer.Words[i].Text = name + "=" + answer.Words[i].Text
		}
		return answer
	case strings.HasPrefix(w, "-") && !known:
		return wordsOf("--help", "--version")
	case strings.HasPrefix(w, "-"):
		answer := wordsOf("--help")
		for _, f := range command.Flags {
			for _, name := range f.Names {
				answer.Words = append(answer.Words, Word{name, f.Usage})
			}
		}
		return answer
	case !known:
		answer := p.kind("WORKSPACE", w)
		answer.Files = w != "" && strings.Contains("./~", w[:1])
		for name, c := range p.commands {
			if !strings.Contains(name, " ") {
				answer.Words = append(answer.Words, Word{name, c.Summary})
			}
		}
		return answer
	case len(command.Subcommands) > 0:
		answer := Answer{}
		for _, name := range command.Subcommands {
			answer.Words = append(answer.Words, Word{name, p.commands[command.Name+" "+name].Summary})
		}
		return answer
	}
	return p.argument(command, w)
}

// argument completes the next argument of a command.
func (p *parsed) argument(c Command, w string) (answer Answer) {
	places := synopsis(c.Args)
	if len(places) == 0 {
		return answer
	}
	at := len(p.args)
	if at >= len(places) {
		if at = len(places) - 1; !strings.Contains(c.Args, "...") {
			return answer
		}
	}
	inMount := slices.Contains(places[0], "MOUNTPOINT") && at > 0
	for _, kind := range places[at] {
		switch {
		case kind == "PATH" && inMount:
			for _, name := range p.Paths(p.args[0], w) {
				answer.Words = append(answer.Words, Word{Text: name})
			}
			continue
		case kind == "MOUNTPOINT" && at > 0: // one that is to come
			kind = "DIR"
		case kind == strings.ToLower(kind):
			answer.Words = append(answer.Words, Word{Text: kind})
			continue
		}
		more := p.kind(kind, w)
		answer.Words, answer.Files = append(answer.Words, more.Words...), answer.Files || more.Files
	}
	return answer
}

// synopsis has the candidates for each place of the arguments that the help shows.
func synopsis(args string) (places [][]string) {
	words := strings.Fields(strings.NewReplacer("[", "", "]", "", "...", "").Replace(args))
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		switch {
		case words[i] == "|" && i+1 < len(words) && words[i+1] == words[0]: // another form of the whole
			return places
		case words[i] == "|" && i+1 < len(words) && len(places) > 0:
			i++
			last := len(places) - 1
			places[last] = append(places[last], strings.Split(words[i], "|")...)
		case words[i] != "|":
			places = append(places, strings.Split(words[i], "|"))
		}
	}
	return places
}

// kind has the candidates for a word in capitals.
func (p *parsed) kind(kind, w string) Answer {
	if words, known := p.Sources.Words[kind]; known {
		return wordsOf(words...)
	}
	switch kind {
	case "COMMAND":
		return wordsOf(slices.DeleteFunc(slices.Collect(maps.Keys(p.commands)), func(name string) bool { return strings.Contains(name, " ") })...)
	case "ADDRESS":
		return wordsOf(p.Addresses()...)
	case "WORKSPACE", "TEMPLATE":
		answer := Answer{Files: !strings.HasPrefix(w, "@")}
		if w == "" || !answer.Files {
			answer.Words = wordsOf(p.Addresses()...).Words
		}
		return answer
	case "MOUNTPOINT":
		answer := wordsOf(p.Mounts()...)
		answer.Files = true
		return answer
	case "FILE", "DIR", "PATH", "PLACE", "STATEDIR", "CMD":
		return Answer{Files: true}
	}
	return Answer{}
}

func wordsOf(texts ...string) (a Answer) {
	for _, text := range texts {
		a.Words = append(a.Words, Word{Text: text})
	}
	return a
}

// split takes a line of a shell apart, as far as quotes and backslashes go. The last word
// is the one at the end, which may be empty.
func split(line string) (words []string) {
	var word strings.Builder
	quote, escaped, begun := rune(0), false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && unicode.IsSpace(r):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	return append(words, word.String())
}
