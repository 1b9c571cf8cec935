// Package manual writes the manual: the page wsmount(1), and those of the files that wsmount
// reads, wsmount.yaml(5) and wsmount-manifest(5), also as text and as HTML. Its texts about
// commands and flags come from the structures that the help is printed from, those about
// files from package reference; all other texts are in this package.
package manual

import (
	"io"
	"strings"
)

// A Page describes the program. In its texts, lines that begin with two
// blanks are examples, an empty line ends a paragraph, and `back quotes` mean text to
// type.
type Page struct {
	Version     string
	Epoch       string // time of the release in seconds, as $SOURCE_DATE_EPOCH has it; else the page has no date
	Description string
	Commands    []Command
	CommonFlags []Item
	ExitStatus  []Item
}

// A Command is one that can be run.
type Command struct {
	Synopsis, Summary, Description string
	Flags                          []Item // beside the common ones
}

// An Item is a flag with the name of its value, or another thing that is explained.
type Item struct{ Tag, Value, Text string }

// Print writes the page.
func (p Page) Print(w io.Writer) error {
	r := roff{&strings.Builder{}}
	r.title("wsmount", 1, p.Epoch, p.Version, "User Commands")
	r.macro("SH", "NAME")
	r.line(`wsmount \- mount a declared workspace as a directory`)
	r.synopsis()
	r.macro("SH", "DESCRIPTION")
	r.text(p.Description)
	r.text("Flags may stand anywhere before --; all commands take those under COMMON FLAGS.")
	r.macro("SH", "COMMANDS")
	for _, c := range p.Commands {
		r.macro("SS", c.Synopsis)
		r.text(strings.ToUpper(c.Summary[:1]) + c.Summary[1:] + ".")
		r.text(c.Description)
		r.items(c.Flags)
	}
	r.macro("SH", "COMMON FLAGS")
	r.items(p.CommonFlags)
	for _, s := range sections {
		r.macro("SH", s.title)
		r.text(s.text)
		for _, i := range s.items {
			r.item(i[0], "", i[1])
		}
	}
	r.macro("SH", "EXIT STATUS")
	r.items(p.ExitStatus)
	r.macro("SH", "SEE ALSO")
	r.line(strings.Join([]string{`.BR wsmount.yaml (5)`, `.BR wsmount\-manifest (5)`, `.BR mount (8)`, `.BR umount (8)`, `.BR fstab (5)`, `.BR fusermount3 (1)`}, " ,\n"))
	_, err := io.WriteString(w, r.w.String())
	return err
}

func (r roff) synopsis() {
	r.macro("SH", "SYNOPSIS")
	for i, line := range [][2]string{
		{"wsmount", "WORKSPACE MOUNTPOINT [FLAG ...]"},
		{"wsmount", "COMMAND [ARGUMENT ...] [FLAG ...]"},
		{"mount -t wsmount", "[-o OPTIONS] WORKSPACE MOUNTPOINT"},
		{"umount", "MOUNTPOINT"},
	} {
		if i > 0 {
			r.macro("br")
		}
		r.macro("B", line[0])
		r.line(escape(line[1]))
	}
}

func (r roff) items(list []Item) {
	for _, i := range list {
		r.item(i.Tag, i.Value, i.Text)
	}
}
