// Package wrap breaks texts into lines of a terminal, and cuts those that are too long.
package wrap

import (
	"strings"
	"unicode/utf8"

	"github.com/wsmount/wsmount/cache/exactjson"
)

// OneLine keeps a message on its line and control characters off the terminal. Bytes that are
// not UTF-8 stay apart from each other.
func OneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, exactjson.Visible(s)))
}

// Lines breaks a text at blanks into lines of at most so many characters; with 0 it is one
// line. A word that is longer stays whole: it may be a path. An empty text is one empty line.
func Lines(s string, most int) []string {
	if most <= 0 {
		return []string{s}
	}
	var out []string
	words := strings.Split(s, " ")
	line, length := words[0], utf8.RuneCountInString(words[0])
	for _, word := range words[1:] {
		n := utf8.RuneCountInString(word)
		if length+1+n > most {
			out = append(out, line)
			line, length = word, n
			continue
		}
		line, length = line+" "+word, length+1+n
	}
	return append(out, line)
}

// Text breaks a text into lines of at most so many bytes that begin with a margin. Lines
// that begin with two blanks are examples and stay as they are; an empty line parts
// paragraphs.
func Text(text string, margin, most int) string {
	pad := strings.Repeat(" ", margin)
	var out, line strings.Builder
	flush := func() {
		if line.Len() > 0 {
			out.WriteString(pad + line.String() + "\n")
			line.Reset()
		}
	}
	for l := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(l, "  ") || l == "" {
			flush()
			out.WriteString(strings.TrimRight(pad+l, " ") + "\n")
			continue
		}
		for _, word := range strings.Fields(l) {
			if line.Len() > 0 && margin+line.Len()+1+len(word) > most {
				flush()
			}
			if line.Len() > 0 {
				line.WriteByte(' ')
			}
			line.WriteString(word)
		}
	}
	flush()
	return out.String()
}

// Beginning is the beginning of a text, of whole lines where it can be, and how much of it is
// left out. Bytes that are not UTF-8 are replaced, as JSON would.
func Beginning(text string, most int) (kept string, omitted int) {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= most {
		return text, 0
	}
	end := strings.LastIndexByte(text[:most], '\n') + 1
	if end == 0 {
		for end = most; end > 0 && !utf8.RuneStart(text[end]); end-- {
		}
	}
	return text[:end], len(text) - end
}
