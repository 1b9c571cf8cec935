package reference

import (
	"embed"
	"regexp"
	"strings"
)

//go:embed texts/*.txt
var texts embed.FS

// A text has the sentences of a page. Its file begins with a title, and the introduction.
// "## NAME: TITLE" begins a section, which has an introduction too; a section without a name
// has no keys. A line "PATH" or "PATH = DEFAULT" begins a key, whose lines are indented by
// four blanks; lines that are indented further are examples.
type text struct {
	title, intro string
	sections     []section
}

type section struct {
	name, title, intro string
	entries            []entry
}

type entry struct{ path, defaults, text string }

func read(name string) (*text, error) {
	data, err := texts.ReadFile("texts/" + name + ".txt")
	if err != nil {
		return nil, err
	}
	var r reader
	for line := range strings.Lines(string(data)) {
		r.line(strings.TrimRight(line, "\n"))
	}
	r.finish()
	return &r.text, nil
}

// A reader reads the lines of a text.
type reader struct {
	text
	lines []string // of the paragraphs that are being read
}

func (r *reader) line(l string) {
	switch {
	case r.title == "":
		r.title = l
	case strings.HasPrefix(l, "## "):
		r.finish()
		name, title, _ := strings.Cut(l[3:], ": ")
		r.sections = append(r.sections, section{name: strings.TrimSuffix(name, ":"), title: title})
	case strings.HasPrefix(l, "| ") || l == "|": // prose of an introduction
		r.lines = append(r.lines, strings.TrimPrefix(l[1:], " "))
	case strings.HasPrefix(l, "    ") || l == "":
		r.lines = append(r.lines, strings.TrimPrefix(l, "    "))
	default:
		r.finish()
		path, defaults, _ := strings.Cut(l, " = ")
		s := &r.sections[len(r.sections)-1]
		s.entries = append(s.entries, entry{path: path, defaults: defaults})
	}
}

// finish gives the lines that were read to the key or introduction that they describe.
func (r *reader) finish() {
	said := strings.TrimSpace(strings.Join(r.lines, "\n"))
	r.lines = nil
	if len(r.sections) == 0 {
		r.intro = said
		return
	}
	if s := &r.sections[len(r.sections)-1]; len(s.entries) == 0 {
		s.intro = said
	} else {
		s.entries[len(s.entries)-1].text = said
	}
}

var free = regexp.MustCompile(`<[^>]*>`)

// plain is the path of a key as the schemas have it.
func plain(path string) string { return free.ReplaceAllString(path, "*") }
