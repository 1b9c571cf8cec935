// Package wrap breaks texts into lines of a terminal.
package wrap

import "strings"

// OneLine keeps a message on its line and control characters off the terminal.
func OneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s))
}

// Lines breaks a text at blanks into lines of at most so many characters, and a word that
// is longer than that anywhere. Blanks in a row count as one. An empty text is one empty line.
func Lines(s string, most int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(s) {
		for len([]rune(word)) > most {
			if line != "" {
				out, line = append(out, line), ""
			}
			out, word = append(out, string([]rune(word)[:most])), string([]rune(word)[most:])
		}
		if line != "" && len([]rune(line))+1+len([]rune(word)) > most {
			out, line = append(out, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
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
