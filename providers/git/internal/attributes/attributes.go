// Package attributes reads files of attributes (gitattributes), as git does: their patterns, values
// and macros. It also decides by them which files go through LFS.
//
// It knows no tree: the caller finds the files of attributes, from the root down, and reads them.
//
//	lines, macros := attributes.Parse(text, nil, true)
//	driver, said := attributes.Value(lines, []string{"docs", "CHANGES"}, "merge")
//
//	f := cache.With(nil, 0, file, read) // of the root
//	f.IsLFS([]string{"docs", "film.mp4"})
package attributes

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Name is the file in which a directory sets attributes of files in it and below.
const Name = ".gitattributes"

// MaxSize is the size above which such a file is ignored.
const MaxSize = 1 << 20

// Line is a line of such a file: a pattern, and the attributes of files that match it.
type Line struct {
	pattern string
	words   []string // macros are expanded
}

// Macros are words that stand for others.
type Macros map[string][]string

const macroMark = "[attr]"

// Parse reads a file of attributes, and leaves out lines that git ignores. The one of the root may
// define macros, which it returns with those that are known; nil: those that git knows by itself.
func Parse(text string, known Macros, isRoot bool) ([]Line, Macros) {
	if known == nil {
		known = ownMacros
	}
	var lines []Line
	for line := range strings.Lines(text) {
		pattern, rest := cutPattern(strings.TrimSpace(line))
		words := strings.Fields(rest)
		if pattern == "" || pattern[0] == '#' || slices.ContainsFunc(words, isOdd) {
			continue
		}
		if name, is := strings.CutPrefix(pattern, macroMark); is {
			if isRoot {
				known = maps.Clone(known)
				known[name] = words
			}
			continue
		}
		lines = append(lines, Line{pattern, words})
	}
	for i := range lines {
		lines[i].words = known.expand(lines[i].words, 0)
	}
	return lines, known
}

// ownMacros are those that git knows by itself.
var ownMacros = Macros{"binary": {"-diff", "-merge", "-text"}}

const deepestMacro = 8

func (m Macros) expand(words []string, depth int) (all []string) {
	for _, word := range words {
		all = append(all, word)
		if more := m[word]; len(more) > 0 && depth < deepestMacro {
			all = append(all, m.expand(more, depth+1)...)
		}
	}
	return all
}

// Value is the value by the last line that matches a path, which begins in the directory of the
// file, and names the attribute; said is false when none does. An attribute that is set has the
// value "set", and one that is unset or unspecified has "".
func Value(lines []Line, parts []string, attribute string) (value string, said bool) {
	for _, line := range slices.Backward(lines) {
		if v, ok := line.value(attribute); ok && matchesPath(line.pattern, parts) {
			return v, true
		}
	}
	return "", false
}

func (l Line) value(attribute string) (value string, said bool) {
	for _, word := range l.words {
		name, v, given := strings.Cut(word, "=")
		switch {
		case name == attribute && given:
			value, said = v, true
		case name == attribute:
			value, said = "set", true
		case name == "-"+attribute, name == "!"+attribute:
			value, said = "", true
		}
	}
	return value, said
}

// isOdd reports whether a word is no attribute to git, which then ignores the line.
func isOdd(attribute string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(attribute, "-!"), "=")
	return name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != ""
}

// cutPattern takes the pattern from a line, which may be quoted.
func cutPattern(line string) (pattern, rest string) {
	if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
		pattern, _ = strconv.Unquote(quoted)
		return pattern, line[len(quoted):]
	}
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		return "", ""
	}
	return line[:end], line[end:]
}

// matchesPath matches as gitattributes does: without a slash the last name, else
// the path from the directory of the file on. A directory by itself matches nothing
// below.
func matchesPath(pattern string, parts []string) bool {
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(pattern, parts[len(parts)-1])
		return ok
	}
	return matchesParts(strings.Split(strings.TrimPrefix(pattern, "/"), "/"), parts)
}

func matchesParts(pattern, parts []string) bool {
	switch {
	case len(pattern) == 0:
		return len(parts) == 0
	case pattern[0] == "**" && len(pattern) == 1:
		return len(parts) > 0
	case pattern[0] == "**":
		for i := range parts {
			if matchesParts(pattern[1:], parts[i:]) {
				return true
			}
		}
		return false
	case len(parts) == 0:
		return false
	}
	ok, _ := path.Match(pattern[0], parts[0])
	return ok && matchesParts(pattern[1:], parts[1:])
}
