package mountspec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// maxFindings bounds the output for one hostile file.
const maxFindings = 200

// decoder reads one file. It collects findings and never stops at the first.
type decoder struct {
	file     string
	line0    int // lines of the file before the frontmatter
	opts     Options
	findings Findings
	bad      map[*yaml.Node]bool // already reported: say nothing more

	// A manifest is described instead of read where these are set; see Schema.
	definitions map[string]*jsonschema.Schema
	providers   []string
}

func newDecoder(file string, o Options) *decoder {
	return &decoder{file: file, opts: o, bad: map[*yaml.Node]bool{}}
}

// lineIn turns a line of the frontmatter into a line of the file.
func (d *decoder) lineIn(line int) int { return max(line, 1) + d.line0 }

func (d *decoder) add(f Finding) {
	if f.Severity == Warning && d.opts.Strict {
		f.Severity = Error
	}
	if f.Severity == Warning {
		f.Code = "" // upstream's codes are those of errors
	}
	switch f.File = d.file; {
	case len(d.findings) < maxFindings:
		d.findings = append(d.findings, f)
	case len(d.findings) == maxFindings:
		d.findings = append(d.findings, Finding{File: d.file, Line: f.Line, Column: f.Column, Rule: "too-many-findings", Message: "more is wrong than is listed here"})
	}
}

// reportLine reports a line of the file where no node is at hand.
func (d *decoder) reportLine(line int, rule, hint, format string, args ...any) {
	d.add(Finding{Line: line, Column: 1, Rule: rule, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// value is a node with its place, for findings about it. The zero value is an
// absent one.
type value struct {
	d    *decoder
	n    *yaml.Node
	path string
	code string // upstream code of findings about it

	outline *outline // not nil: it stands for every valid one, and n is nil
}

func (v value) present() bool { return v.described() || v.n != nil && !v.d.bad[v.n] }

func (v value) pos() Pos {
	if v.n == nil {
		return Pos{}
	}
	return Pos{v.d.file, v.d.lineIn(v.n.Line), max(v.n.Column, 1)}
}

func (v value) fail(rule, hint, format string, args ...any) {
	v.report(Error, rule, hint, fmt.Sprintf(format, args...))
}

func (v value) warn(rule, hint, format string, args ...any) {
	v.report(Warning, rule, hint, fmt.Sprintf(format, args...))
}

func (v value) report(s Severity, rule, hint, message string) {
	if v.d == nil || v.d.definitions != nil {
		return // a description has no errors
	}
	p := v.pos()
	v.d.add(Finding{Severity: s, Line: p.Line, Column: p.Column, Path: showPath(v.path), Rule: rule, Code: v.code, Message: message, Hint: hint})
}

// wrong reports a value of another type than wanted.
func (v value) wrong(want string) {
	switch {
	case v.n.Kind == yaml.ScalarNode && v.n.ShortTag() == "!!null":
		v.fail("empty-value", "give it a value or remove the key", "has no value")
	case v.n.Kind == yaml.ScalarNode && want == "text":
		v.fail("wrong-type", "quote it", "must be text, and %s is not", show(v.n.Value))
	default:
		v.fail("wrong-type", "", "must be %s", want)
	}
}

// text returns a scalar as it is written: a date, a number or an id that
// happens to be digits is still the author's text. It refuses control characters.
func (v value) text() (string, bool) { return v.textWith("") }

// prose is text of several lines.
func (v value) prose() (string, bool) { return v.textWith("\n\t") }

func (v value) textWith(allowed string) (string, bool) {
	if v.described() {
		v.outline.Type = jsonschema.Types{"string", "number"} // a version may look like one
		return "", true
	}
	if !v.present() {
		return "", false
	}
	if v.n.Kind != yaml.ScalarNode {
		v.wrong("text")
		return "", false
	}
	switch v.n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!timestamp":
	default:
		v.wrong("text")
		return "", false
	}
	if r, found := controlIn(v.n.Value, allowed); found {
		v.fail("control-character", "remove it", "holds the control character %U", r)
		return "", false
	}
	return v.n.Value, true
}

// controlIn finds the first character that would act on a terminal or on a
// reader's eye instead of being seen.
func controlIn(s, allowed string) (rune, bool) {
	for _, r := range s {
		if isControl(r) && !strings.ContainsRune(allowed, r) {
			return r, true
		}
	}
	return 0, false
}

func isControl(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || r == 0xfeff ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func (v value) boolean() (val, ok bool) {
	if v.described() {
		v.outline.Type = jsonschema.Types{"boolean"}
		return false, false
	}
	if !v.present() {
		return false, false
	}
	if v.n.Kind != yaml.ScalarNode || v.n.ShortTag() != "!!bool" {
		v.fail("wrong-type", "write true or false", "must be true or false")
		return false, false
	}
	return strings.EqualFold(v.n.Value, "true"), true
}

var plainInteger = expression(`^[-+]?(0|[1-9][0-9]*)$`)

// integer accepts plain decimal only: 010, 0x10 and 1_000 mean different
// numbers to different YAML parsers.
func (v value) integer(lo, hi int64) (int64, bool) {
	if v.described() {
		v.outline.Type, v.outline.Minimum, v.outline.Maximum = jsonschema.Types{"integer"}, &lo, &hi
		return lo, false
	}
	if !v.present() {
		return 0, false
	}
	if v.n.Kind != yaml.ScalarNode || v.n.ShortTag() != "!!int" || !plainInteger().MatchString(v.n.Value) {
		v.fail("wrong-type", "write plain decimal digits", "must be a whole number")
		return 0, false
	}
	n, err := strconv.ParseInt(v.n.Value, 10, 64)
	if err != nil || n < lo || n > hi {
		v.fail("range", "", "must be from %d to %d", lo, hi)
		return 0, false
	}
	return n, true
}

// amount is a number that is not negative.
func (v value) amount() (float64, bool) {
	if v.described() {
		v.outline.Type, v.outline.Minimum = jsonschema.Types{"number"}, new(int64)
		return 0, false
	}
	if !v.present() {
		return 0, false
	}
	if v.n.Kind == yaml.ScalarNode && (v.n.ShortTag() == "!!int" || v.n.ShortTag() == "!!float") {
		if f, ok := plainFloat(v.n.Value); ok {
			if f < 0 {
				v.fail("range", "", "must not be negative")
			}
			return f, true
		}
	}
	v.fail("wrong-type", "write plain decimal digits", "must be a number")
	return 0, false
}

var plainNumber = expression(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func plainFloat(s string) (float64, bool) {
	if !plainNumber().MatchString(s) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// items returns the elements of a sequence.
func (v value) items() []value {
	if v.described() {
		if v.outline.Type = (jsonschema.Types{"array"}); v.outline.Items == nil {
			v.outline.Items = &jsonschema.Schema{}
		}
		return []value{v.within(v.outline.Items)}
	}
	if !v.present() {
		return nil
	}
	if v.n.Kind != yaml.SequenceNode {
		v.wrong("a list")
		return nil
	}
	out := make([]value, len(v.n.Content))
	for i, c := range v.n.Content {
		out[i] = value{d: v.d, n: c, path: index(v.path, i), code: v.code}
	}
	return out
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// showPath keeps a document path printable and short, whichever keys it has.
func showPath(path string) string {
	const limit = 200
	if credentialShape(path) != "" {
		return "[redacted]"
	}
	q := strconv.QuoteToASCII(path)
	q = q[1 : len(q)-1]
	if len(q) > limit {
		return q[:limit] + "..."
	}
	return q
}

// sequence is items for a value that may also be of another type: nil then.
func (v value) sequence() []value {
	if v.described() && v.outline.form == yaml.SequenceNode || !v.described() && v.present() && v.n.Kind == yaml.SequenceNode {
		return v.items()
	}
	return nil
}

// expression is a regular expression that is compiled when it is first asked for: all of
// them together take milliseconds, and most commands ask for none.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
