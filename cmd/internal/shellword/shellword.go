// Package shellword quotes words of commands that messages suggest, for a shell.
//
//	hint := "wsmount restore " + shellword.Of(mountpoint) + " " + shellword.Of(name)
package shellword

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// plain are the characters that mean themselves to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@+=,"

// Of is a word as a shell takes it: as it is, or in quotes. One with unprintable characters is
// written as $'...', which bash and zsh know.
func Of(word string) string {
	switch {
	case word != "" && strings.Trim(word, plain) == "":
		return word
	case strings.ContainsFunc(word, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }):
		return escaped(word)
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func escaped(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(word) {
		if c < ' ' || c > '~' || c == '\'' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
