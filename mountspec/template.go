package mountspec

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// templateTokens are the tokens that a message template may hold.
var templateTokens = []string{"operator", "summary", "workspace", "turn", "conversation", "files", "count", "date"}

// maxMessage bounds an expanded message, in bytes.
const maxMessage = 1024

// Template is a parsed commit message template (AIP-35 message_template).
type Template struct{ parts []templatePart }

type templatePart struct {
	literal string
	token   string // empty: a literal
}

// Vars are the values of the tokens. They are free text that came from
// outside: Expand makes them harmless. Count is for when there are more files
// than Files lists; zero means len(Files).
type Vars struct {
	Operator, Summary, Workspace, Turn, Conversation string
	Files                                            []string
	Count                                            int
	Date                                             time.Time
}

// ParseTemplate reads a template: text with tokens in double braces. An
// unknown token and an unclosed one refuse; there is no other syntax.
func ParseTemplate(s string) (*Template, error) {
	t := &Template{}
	for s != "" {
		literal, rest, found := strings.Cut(s, "{{")
		if literal != "" {
			t.parts = append(t.parts, templatePart{literal: literal})
		}
		if !found {
			break
		}
		inner, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, fmt.Errorf("message template: {{ is never closed")
		}
		token := strings.TrimSpace(inner)
		if !slices.Contains(templateTokens, token) {
			return nil, fmt.Errorf("message template: unknown token %s", show(token))
		}
		t.parts = append(t.parts, templatePart{token: token})
		s = after
	}
	if len(t.parts) == 0 {
		return nil, fmt.Errorf("message template: it is empty")
	}
	return t, nil
}

// Expand fills the template. The result is one line without control
// characters, at most 1024 bytes, never empty; values are not expanded again.
// Without a summary a description of the change stands in its place.
func (t *Template) Expand(v Vars) string {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.literal)
		if p.token != "" {
			b.WriteString(oneLine(v.value(p.token)))
		}
	}
	if s := oneLine(b.String()); s != "" {
		return s
	}
	return oneLine(v.describe())
}

func (v Vars) value(token string) string {
	switch token {
	case "operator":
		return v.Operator
	case "workspace":
		return v.Workspace
	case "turn":
		return v.Turn
	case "conversation":
		return v.Conversation
	case "files":
		return v.files()
	case "count":
		return itoa(v.count())
	case "date":
		return v.Date.Format(time.DateOnly)
	}
	if oneLine(v.Summary) == "" {
		return v.describe()
	}
	return v.Summary
}

func (v Vars) count() int { return max(v.Count, len(v.Files)) }

// files names the first few.
func (v Vars) files() string {
	const named = 3
	first := v.Files[:min(named, len(v.Files))]
	s := strings.Join(first, ", ")
	if more := v.count() - len(first); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return strings.TrimPrefix(s, " and ")
}

func (v Vars) describe() string {
	switch n := v.count(); {
	case n == 0:
		return "update"
	case n == 1:
		return "update " + v.files()
	default:
		return fmt.Sprintf("update %d files: %s", n, v.files())
	}
}

// oneLine turns control characters and runs of white space into one space and
// cuts at a character's border.
func oneLine(s string) string {
	if len(s) > 4*maxMessage {
		s = s[:4*maxMessage]
	}
	s = strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = s[:maxMessage]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
	}
	return strings.TrimSpace(s)
}
