// Package ignore knows the language of ignore files (gitignore(5)): which names below its
// directory such a file excludes from tracking.
//
// Its verdicts are git's for every content of such a file, including the cases that git's
// manual does not mention; a test compares with the git program. It reads no files or
// directories: the caller walks down the path, and must treat everything below an ignored
// directory as ignored, even against another rule.
//
//	rules := ignore.Parse(content)
//	verdict := rules.Match("docs/build", true) // relative to the directory of the file
package ignore

import (
	"bytes"
	"slices"
	"strings"
)

// Rules are the rules of one file, in its order: the last match counts. They do not change, and
// may be used concurrently.
type Rules struct{ rules []rule }

// rule is one line of a file.
type rule struct {
	pattern  string
	fixed    int  // length of the literal prefix, in bytes
	negated  bool // a match is not ignored
	dirOnly  bool
	baseName bool // without a slash: it matches names at any depth
	ending   bool // a star and a literal suffix
}

// Verdict is the decision of rules about a name.
type Verdict uint8

// The verdicts.
const (
	Unsaid  Verdict = iota // nothing: the rules of the directory above decide
	Ignored                // it is not to be tracked
	Kept                   // it is, whatever rules above decide
)

// Parse reads the content of an ignore file. Each line is a rule or has no effect: there are no
// errors.
func Parse(content []byte) *Rules {
	r := &Rules{}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		line, _, _ = bytes.Cut(line, []byte{0})
		if text := trim(string(line)); text != "" {
			r.rules = append(r.rules, compile(text))
		}
	}
	return r
}

// trim removes trailing spaces that are not escaped by a backslash.
func trim(line string) string {
	end := -1 // start of spaces that may be trailing
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			if end < 0 {
				end = i
			}
			continue
		case '\\':
			if i++; i == len(line) {
				return line
			}
		}
		end = -1
	}
	if end >= 0 {
		return line[:end]
	}
	return line
}

const special = `*?[\`

func compile(text string) (r rule) {
	text, r.negated = strings.CutPrefix(text, "!")
	r.ending = strings.HasPrefix(text, "*") && !strings.ContainsAny(text[1:], special)
	r.pattern, r.dirOnly = strings.CutSuffix(text, "/")
	r.baseName = !strings.Contains(r.pattern, "/")
	if r.fixed = strings.IndexAny(r.pattern, special); r.fixed < 0 {
		r.fixed = len(r.pattern)
	}
	return r
}

// Empty reports whether there are no rules.
func (r *Rules) Empty() bool { return r == nil || len(r.rules) == 0 }

// Match is the verdict on a path, relative to the directory of the file and separated by
// slashes. It covers the path itself and not the directories above it.
func (r *Rules) Match(path string, isDir bool) Verdict {
	if r == nil {
		return Unsaid
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(r.rules) - 1; i >= 0; i-- {
		switch rule := &r.rules[i]; {
		case rule.dirOnly && !isDir:
		case rule.baseName && !rule.matchName(name), !rule.baseName && !rule.matchPath(path):
		case rule.negated:
			return Kept
		default:
			return Ignored
		}
	}
	return Unsaid
}

func (r *rule) matchName(name string) bool {
	switch {
	case r.fixed == len(r.pattern):
		return name == r.pattern
	case r.ending:
		return strings.HasSuffix(name, r.pattern[1:])
	}
	return wild(r.pattern, name, false)
}

// matchPath compares the literal prefix first. Stars after it count as the start of the
// pattern, as in git.
func (r *rule) matchPath(path string) bool {
	pattern, fixed := r.pattern, r.fixed
	if pattern[0] == '/' {
		pattern, fixed = pattern[1:], fixed-1
	}
	if !strings.HasPrefix(path, pattern[:fixed]) {
		return false
	}
	return wild(pattern[fixed:], path[fixed:], true)
}

// Same reports whether the rules surely give the same verdict for each name below two
// directories, given relative to that of the file.
func (r *Rules) Same(a, b string) bool {
	if r == nil {
		return true
	}
	for i := range r.rules {
		rule := &r.rules[i]
		if rest, ok := strings.CutPrefix(rule.pattern, "**/"); rule.baseName || ok && !strings.Contains(rest, "/") {
			continue // it matches a name in any directory
		}
		if rule.reaches(a) || rule.reaches(b) {
			return false
		}
	}
	return true
}

// reaches reports whether a rule about paths may match something below a directory, judged by
// its literal prefix.
func (r *rule) reaches(dir string) bool {
	fixed := strings.TrimPrefix(r.pattern[:r.fixed], "/")
	if dir == "" {
		return true
	}
	dir += "/"
	n := min(len(dir), len(fixed))
	return dir[:n] == fixed[:n]
}

// Covers reports whether a path is ignored, given by its segments: by rules about
// itself, or about a directory that it is in. rules gives those of the directory
// of the first n segments.
func Covers(path []string, isDir bool, rules func(n int) *Rules) bool {
	for end := 1; end <= len(path); end++ {
		verdict := Unsaid
		for n := end - 1; n >= 0 && verdict == Unsaid; n-- {
			if r := rules(n); !r.Empty() {
				verdict = r.Match(strings.Join(path[n:end], "/"), isDir || end < len(path))
			}
		}
		if verdict == Ignored {
			return true
		}
	}
	return false
}

// Keeps reports whether a rule is negated, which takes back the verdict of others.
func (r *Rules) Keeps() bool {
	return r != nil && slices.ContainsFunc(r.rules, func(r rule) bool { return r.negated })
}
