package git

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// attributesName is where a directory says how files in it and below are treated.
const attributesName = ".gitattributes"

// isUnion reports whether a tree declares that of a file the lines of both sides
// are kept: what the last line says that matches, in the nearest directory.
func (s *rebasing) isUnion(root *node, at string) (bool, error) {
	parts := names(at)
	dirs := []*node{root}
	for _, name := range parts[:len(parts)-1] {
		n := dirs[len(dirs)-1]
		if err := s.nodes.load(n); err != nil {
			return false, err
		}
		if n = n.dir[name]; !isTree(n) {
			break
		}
		dirs = append(dirs, n)
	}
	for depth := len(dirs) - 1; depth >= 0; depth-- {
		if err := s.nodes.load(dirs[depth]); err != nil {
			return false, err
		}
		file := dirs[depth].dir[attributesName]
		if !isFile(file) {
			continue
		}
		text, err := s.text(file.id)
		if err != nil {
			return false, err
		}
		if driver, said := mergeDriver(string(text), parts[depth:]); said {
			return driver == "union", nil
		}
	}
	return false, nil
}

// mergeDriver is what the lines of a file of attributes say of merging a path; said
// is false when they say nothing.
func mergeDriver(text string, parts []string) (driver string, said bool) {
	for line := range strings.Lines(text) {
		pattern, rest := cutPattern(strings.TrimSpace(line))
		attributes := strings.Fields(rest)
		if pattern == "" || pattern[0] == '#' || !matchesPath(pattern, parts) || slices.ContainsFunc(attributes, isOdd) {
			continue
		}
		for _, attribute := range attributes {
			name, value, _ := strings.Cut(attribute, "=")
			switch name {
			case "merge":
				driver, said = value, true
			case "-merge", "!merge", "binary":
				driver, said = "", true
			}
		}
	}
	return driver, said
}

// isOdd reports whether git takes a word for no attribute, and then ignores the line.
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
