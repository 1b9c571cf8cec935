package mountspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ExcludeSet is a compiled exclude list: paths that never leave the machine.
//
// A pattern is anchored at the root of the volume. Its segments are separated
// by slashes; * stands for any part of one segment, ** as a whole segment for
// any number of them, and a backslash takes the special meaning from the
// character behind it. A pattern matches a path and everything below it; one
// that ends in / matches directories only, one that ends in /** only the names
// below. There is no negation: an excluded path cannot be brought back.
//
//	.runs/       the directory .runs at the root, and all below
//	**/*.log     every .log, at any depth
//	notes        notes itself, and all below if it is a directory
//
// The zero set matches nothing. Matching is safe for concurrent use.
type ExcludeSet struct {
	patterns []pattern
	text     []string
}

type pattern struct {
	segments []segment
	dirOnly  bool
}

// segment is one path segment of a pattern: ** or a text with stars. parts
// holds the literals between the stars.
type segment struct {
	any   bool
	parts []string
}

const (
	maxPatterns      = 4096
	maxPatternLength = 4096
)

// CompileExclude compiles an exclude list. The error names the pattern.
func CompileExclude(patterns []string) (*ExcludeSet, error) {
	if len(patterns) > maxPatterns {
		return nil, fmt.Errorf("exclude: more than %d patterns", maxPatterns)
	}
	set := &ExcludeSet{}
	for _, s := range patterns {
		p, problem := compilePattern(s)
		if problem != "" {
			return nil, fmt.Errorf("exclude: pattern %s %s", show(s), problem)
		}
		set.patterns, set.text = append(set.patterns, p), append(set.text, strconv.Quote(s))
	}
	return set, nil
}

// compilePattern returns the fault of a pattern, or "". Characters that
// other grammars give a meaning refuse: read as plain text they would send
// files that the author meant to exclude.
func compilePattern(s string) (p pattern, problem string) {
	body := strings.TrimPrefix(strings.TrimPrefix(s, "./"), "/")
	p.dirOnly = strings.HasSuffix(body, "/")
	body = strings.TrimSuffix(body, "/")
	switch {
	case body == "":
		return p, "is empty"
	case len(s) > maxPatternLength:
		return p, "is too long"
	case strings.HasPrefix(s, "!"):
		return p, "begins with !, and there is no negation"
	}
	for text := range strings.SplitSeq(body, "/") {
		seg, problem := compileSegment(text)
		if problem != "" {
			return p, problem
		}
		p.segments = append(p.segments, seg)
	}
	return p, ""
}

func compileSegment(text string) (seg segment, problem string) {
	switch {
	case text == "**":
		return segment{any: true}, ""
	case text == "":
		return seg, "holds an empty segment"
	case text == "." || text == "..":
		return seg, "holds a . or .. segment"
	case strings.Contains(text, "**"):
		return seg, "holds ** as a part of a segment"
	}
	var part strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			seg.parts = append(seg.parts, part.String())
			part.Reset()
		case '\\':
			if i++; i == len(text) {
				return seg, "ends a segment in a backslash"
			}
			part.WriteByte(text[i])
		case '?', '[', ']', '{', '}':
			return seg, fmt.Sprintf("holds %c, which has no meaning here", c)
		default:
			part.WriteByte(c)
		}
	}
	seg.parts = append(seg.parts, part.String())
	return seg, ""
}

// Match reports whether the path, relative to the volume's root and separated
// by slashes, is excluded: it or a directory above it matches. isDir says
// whether the path itself is a directory. The root is never excluded.
func (x *ExcludeSet) Match(path string, isDir bool) bool {
	path = strings.Trim(path, "/")
	if x == nil || path == "" {
		return false
	}
	for i := range x.patterns {
		if x.patterns[i].match(path, isDir) {
			return true
		}
	}
	return false
}

// SameBelow reports whether any name is excluded below one directory exactly if
// it is below the other. It may say false where a list could be shown to be the
// same, and costs as much as two calls of Match, however much lies below.
func (x *ExcludeSet) SameBelow(a, b string) bool {
	if x.Empty() {
		return true
	}
	if out := x.Match(a, true); out || x.Match(b, true) {
		return out == x.Match(b, true) // all below an excluded directory is excluded
	}
	for i := range x.patterns {
		if !slices.Equal(x.patterns[i].reach(a), x.patterns[i].reach(b)) {
			return false
		}
	}
	return true
}

// String is the list, each pattern quoted as Go does: sets of one text match the
// same.
func (x *ExcludeSet) String() string {
	if x == nil {
		return ""
	}
	return strings.Join(x.text, " ")
}

// Empty reports whether the set excludes nothing.
func (x *ExcludeSet) Empty() bool { return x == nil || len(x.patterns) == 0 }

// match walks the path segment by segment with the set of places in the
// pattern that the path so far can have reached: no backtracking, so no
// pattern is slow.
func (p *pattern) match(path string, isDir bool) bool {
	at := make([]bool, len(p.segments)+1)
	at[0] = true
	for rest, more := path, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if !p.step(at, name) {
			return false
		}
		if at[len(p.segments)] && (more || isDir || !p.dirOnly) {
			return true
		}
	}
	return false
}

// reach is the set of places in the pattern that a path can have reached: it
// decides which names below the path match.
func (p *pattern) reach(path string) []bool {
	at := make([]bool, len(p.segments)+1)
	at[0] = true
	if path = strings.Trim(path, "/"); path == "" {
		return at
	}
	for name := range strings.SplitSeq(path, "/") {
		p.step(at, name)
	}
	return at
}

// step advances every place by one segment of a path and reports whether any
// is left. It goes from the end, so that it can work in place.
func (p *pattern) step(at []bool, name string) bool {
	for i := range p.segments { // ** may also match no segment, unless it is last
		if at[i] && p.segments[i].any && i+1 < len(p.segments) {
			at[i+1] = true
		}
	}
	alive := false
	for i := len(p.segments); i >= 0; i-- {
		stay := i < len(p.segments) && p.segments[i].any && at[i]
		enter := i > 0 && at[i-1] && (p.segments[i-1].any && i == len(p.segments) || !p.segments[i-1].any && p.segments[i-1].match(name))
		at[i] = stay || enter
		alive = alive || at[i]
	}
	return alive
}

// match compares a name with literals separated by stars: the first and last
// literal are its ends, each between is found as early as possible.
func (s *segment) match(name string) bool {
	if len(s.parts) == 1 {
		return name == s.parts[0]
	}
	first, last := s.parts[0], s.parts[len(s.parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	middle := name[len(first) : len(name)-len(last)]
	for _, part := range s.parts[1 : len(s.parts)-1] {
		_, after, found := strings.Cut(middle, part)
		if !found {
			return false
		}
		middle = after
	}
	return true
}
