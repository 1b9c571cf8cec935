package ui

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is a name with nothing hidden: invisible characters, those that change the
// direction of text around them, and invalid bytes are written as Go escapes.
func visible(s string) string {
	if strings.IndexFunc(s, hidden) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func hidden(r rune) bool { return r != '\t' && !unicode.IsGraphic(r) }

// visibleText is visible for the lines of a text.
func visibleText(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = visible(l)
	}
	return strings.Join(lines, "\n")
}

// isText reports whether content can be shown. Of a beginning the last character may be cut.
func isText(b []byte, beginning bool) bool {
	for i := len(b) - 1; beginning && i >= max(len(b)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				b = b[:i]
			}
			break
		}
	}
	return bytes.IndexByte(b, 0) < 0 && utf8.Valid(b)
}

// A piece of a sentence is a command or another word that stands as it is typed, or not.
type piece struct {
	Text string
	Code bool
}

// prose splits a message into text and its commands, which are in backquotes.
func prose(s string) (out []piece) {
	for i, text := range strings.Split(s, "`") {
		if text != "" {
			out = append(out, piece{visible(text), i%2 == 1})
		}
	}
	return out
}

// A line of a diff.
type line struct {
	Kind string // add, del, at, same or note
	Text string
}

// A fileDiff is the differences of one file.
type fileDiff struct {
	Name  string
	Lines []line
	Note  string // instead of lines: it is binary, too large ...
}

// mostLines bounds the lines of a diff that a page shows.
const mostLines = 5000

// parseDiff parses a unified diff. It counts the lines of each hunk: a removed line may look
// like the head of a file. left is the number of lines left out. Of the names of files it
// removes the first of the ends that fits.
func parseDiff(text string, ends ...string) (files []fileDiff, left int) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var f *fileDiff
	add := func(kind, text string) {
		if f == nil {
			files = append(files, fileDiff{})
			f = &files[len(files)-1]
		}
		f.Lines = append(f.Lines, line{kind, visible(text)})
	}
	name := func(head string) string {
		for _, end := range ends {
			if plain, ok := strings.CutSuffix(head, end); ok {
				return visible(plain)
			}
		}
		return visible(head)
	}
	removed, added, shown := 0, 0, 0
	for i, l := range lines {
		if shown == mostLines {
			return files, len(lines) - i
		}
		if text == "" {
			break
		}
		shown++
		switch {
		case strings.HasPrefix(l, "\\"):
			add("note", l)
		case removed > 0 && strings.HasPrefix(l, "-"):
			removed--
			add("del", l)
		case added > 0 && strings.HasPrefix(l, "+"):
			added--
			add("add", l)
		case removed > 0 && added > 0:
			removed, added = removed-1, added-1
			add("same", l)
		case strings.HasPrefix(l, "--- "):
			files = append(files, fileDiff{Name: name(l[4:])})
			f = &files[len(files)-1]
		case strings.HasPrefix(l, "+++ "):
			if f != nil {
				f.Name = heading(f.Name, name(l[4:]))
			}
		case strings.HasPrefix(l, "@@ "):
			removed, added = hunk(l)
			add("at", l)
		default: // the daemon's note on a file that it does not compare
			files, f = append(files, fileDiff{Note: visible(l)}), nil
		}
	}
	return files, 0
}

// heading is the head of a comparison of two names.
func heading(from, to string) string {
	switch {
	case from == "/dev/null":
		return "new: " + to
	case to == "/dev/null":
		return "removed: " + from
	case from == to:
		return to
	}
	return from + " → " + to
}

// hunk returns how many lines of each side follow the head of a hunk.
func hunk(l string) (removed, added int) {
	fields := strings.Fields(l)
	if len(fields) < 3 {
		return 0, 0
	}
	length := func(field string) int {
		_, n, ok := strings.Cut(field, ",")
		if !ok {
			return 1
		}
		v, err := strconv.Atoi(n)
		if err != nil {
			return 0
		}
		return v
	}
	return length(fields[1]), length(fields[2])
}

// bytesLeft says how much is left out; "" for nothing.
func bytesLeft(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d more bytes are left out", n)
}
