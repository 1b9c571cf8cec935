// Package screen lays out text for people: as wide as the terminal, and in its colours. In
// a pipe, and in a file, each line is as long as its content, for the programs that read
// lines; there are no colours.
//
// It cuts nothing off, and breaks no word: a path that is longer than the terminal is wide
// stays one that can be copied.
//
//	s := screen.Of(os.Stdout)
//	s.Table([]string{"WORKSPACE", "MOUNTPOINT"}, rows)
//	row := s.Rows(2)
//	row("store", "local-fs, watch")
package screen

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/sandbox"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// A Screen is where lines go.
type Screen struct {
	io.Writer
	Width   int // 0: lines may have any length
	Colours bool
}

const (
	usual = 80 // columns of a terminal that does not say
	least = 20 // of the narrowest that something is laid out for
)

// Of is the screen behind a writer; a Screen is its own.
func Of(w io.Writer) Screen {
	if s, ok := w.(Screen); ok {
		return s
	}
	s := Screen{Writer: w}
	f, ok := w.(*os.File)
	if !ok || !sandbox.IsTerminal(f) {
		return s
	}
	s.Width, s.Colours = usual, os.Getenv("NO_COLOR") == "" && !Dumb()
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		s.Width = max(int(size.Col), least)
	}
	return s
}

// Dumb reports whether the terminal understands nothing but characters.
func Dumb() bool { return cmp.Or(os.Getenv("TERM"), "dumb") == "dumb" }

// A Colour makes a text stand out.
type Colour string

// The colours; "" is none.
const (
	Bad   Colour = "31"
	Good  Colour = "32"
	Warn  Colour = "33"
	Known Colour = "36"
	Head  Colour = "1"
)

// Paint gives a text a colour where there are any.
func (s Screen) Paint(c Colour, text string) string {
	if !s.Colours || c == "" || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

var paint = regexp.MustCompile("\x1b\\[[0-9]*m")

// wide is how many columns a text takes.
func wide(text string) int { return utf8.RuneCountInString(paint.ReplaceAllString(text, "")) }

// padded is a text with blanks up to a width.
func padded(text string, to int) string { return text + strings.Repeat(" ", max(to-wide(text), 0)) }

// Wrapped prints a text after a head. Its further lines begin with a margin.
func (s Screen) Wrapped(head string, margin int, text string) {
	for _, line := range wrap.Lines(text, s.left(max(margin, wide(head)))) {
		fmt.Fprintf(s, "%s%s\n", head, line)
		head = strings.Repeat(" ", margin)
	}
}

// left are the columns beside those that are taken.
func (s Screen) left(taken int) int {
	if s.Width == 0 {
		return 0
	}
	return max(s.Width-taken, least/2)
}

// column is where the values of rows begin.
const column = 12

// Rows returns a printer of "name  value" lines; a value that is too long goes on below
// itself, and an empty one is left out.
func (s Screen) Rows(margin int) func(name, value string) {
	return func(name, value string) {
		if value = wrap.OneLine(value); value == "" {
			return
		}
		s.Wrapped(strings.Repeat(" ", margin)+padded(s.Paint(meanings[name], name), column), margin+column, value)
	}
}

// meanings are the rows about errors, or about states that wait for a person.
var meanings = map[string]Colour{
	"unavailable": Bad, "halted": Bad, "failing": Bad, "last error": Bad, "errors": Bad, "damaged": Bad, "unread": Bad, "push": Bad, "pr": Bad, "why": Bad,
	"conflict": Warn, "held back": Warn, "stale": Warn, "moved": Warn, "not served": Warn, "pull": Warn, "unpushed": Warn, "note": Warn,
}

// between are the blanks between two cells.
const between = "  "

// Table prints rows in columns, below a head if there is one. On a screen that is too narrow
// for that, the cells of a row follow each other, and there is no head.
func (s Screen) Table(head []string, rows [][]string) {
	if head != nil {
		rows = append([][]string{head}, rows...)
	}
	var columns []int
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(columns) {
				columns = append(columns, 0)
			}
			columns[i] = max(columns[i], wide(c))
		}
	}
	all := 0
	for _, n := range columns {
		all += n + len(between)
	}
	fits := s.Width == 0 || all-len(between) <= s.Width
	for i, cells := range rows {
		isHead := i == 0 && head != nil
		switch {
		case fits:
			line := ""
			for j, c := range cells {
				line += padded(c, columns[j]) + between
			}
			fmt.Fprintln(s, s.Paint(map[bool]Colour{true: Head}[isHead], strings.TrimRight(line, " ")))
		case !isHead:
			s.Flow(2, cells...)
		}
	}
}

// Flow prints cells one after the other. Those for which there is no room go on in the next
// line, after a margin.
func (s Screen) Flow(margin int, cells ...string) {
	line := ""
	for i, c := range cells {
		switch {
		case i == 0:
			line = c
		case s.Width > 0 && wide(line)+len(between)+wide(c) > s.Width:
			fmt.Fprintln(s, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", margin) + c
		default:
			line += between + c
		}
	}
	fmt.Fprintln(s, strings.TrimRight(line, " "))
}

// Diff is a unified diff in colours.
func (s Screen) Diff(text string) string {
	if !s.Colours {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		body, end := strings.CutSuffix(l, "\n")
		lines[i] = s.Paint(ofDiff(body), body) + map[bool]string{true: "\n"}[end]
	}
	return strings.Join(lines, "")
}

func ofDiff(line string) Colour {
	switch {
	case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		return Head
	case strings.HasPrefix(line, "+"):
		return Good
	case strings.HasPrefix(line, "-"):
		return Bad
	case strings.HasPrefix(line, "@@"):
		return Known
	}
	return ""
}
