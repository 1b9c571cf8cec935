package mountspec

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// printer builds one mapping in the order in which keys are put. Absent values
// are left out. Its first error is kept and stops nothing.
type printer struct {
	n   *yaml.Node
	err *error
}

func newPrinter() *printer {
	return &printer{&yaml.Node{Kind: yaml.MappingNode}, new(error)}
}

// child is a printer for a mapping inside this one.
func (p *printer) child() *printer {
	return &printer{&yaml.Node{Kind: yaml.MappingNode}, p.err}
}

func (p *printer) fail(format string, args ...any) {
	if *p.err == nil {
		*p.err = fmt.Errorf("print: "+format, args...)
	}
}

func (p *printer) node(key string, n *yaml.Node) {
	if n != nil {
		p.n.Content = append(p.n.Content, p.scalar(key), n)
	}
}

// nested puts the mapping of a child, unless it is empty.
func (p *printer) nested(key string, c *printer) {
	if c != nil && len(c.n.Content) > 0 {
		p.node(key, c.n)
	}
}

func (p *printer) text(key, s string) {
	if s != "" {
		p.node(key, p.scalar(s))
	}
}

func (p *printer) flag(key string, b bool) {
	if b {
		p.node(key, literal("!!bool", "true"))
	}
}

func (p *printer) number(key string, n int64) {
	if n != 0 {
		p.node(key, literal("!!int", strconv.FormatInt(n, 10)))
	}
}

// texts puts a list; nil means absent, an empty list is one.
func (p *printer) texts(key string, list []string) {
	if list != nil {
		seq := &yaml.Node{Kind: yaml.SequenceNode}
		for _, s := range list {
			seq.Content = append(seq.Content, p.scalar(s))
		}
		p.node(key, seq)
	}
}

// open puts a free mapping; nil means absent.
func (p *printer) open(key string, m map[string]any) {
	if m != nil {
		p.node(key, p.plain(m, 0))
	}
}

// spread puts the keys of a free mapping into this one.
func (p *printer) spread(m map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		p.node(key, p.plain(m[key], 0))
	}
}

// list puts a sequence made of one node per element, unless there is none.
func list[T any](p *printer, key string, items []T, print func(*printer, T) *yaml.Node) {
	if len(items) == 0 {
		return
	}
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range items {
		seq.Content = append(seq.Content, print(p, item))
	}
	p.node(key, seq)
}

func literal(tag, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s}
}

var plainWord = expression(`^[A-Za-z][A-Za-z0-9_-]*(/[A-Za-z0-9_-]+)*$`)

// oldWords are texts that some YAML reader takes for something else; that one
// of them is a key of AIP-35 (on) is the reason for quoting keys too.
var oldWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// scalar quotes every text that is not plainly a word.
func (p *printer) scalar(s string) *yaml.Node {
	if !utf8.ValidString(s) {
		p.fail("the text %s is not valid UTF-8", show(s))
		s = ""
	}
	n := literal("!!str", s)
	if !plainWord().MatchString(s) || slices.Contains(oldWords, strings.ToLower(s)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// plain prints the parts of plain values; see value.plain.
func (p *printer) plain(v any, depth int) *yaml.Node {
	if depth > maxDepth {
		p.fail("nested deeper than %d levels", maxDepth)
		return literal("!!null", "null")
	}
	switch v := v.(type) {
	case nil:
		return literal("!!null", "null")
	case string:
		return p.scalar(v)
	case bool:
		return literal("!!bool", strconv.FormatBool(v))
	case int:
		return literal("!!int", strconv.Itoa(v))
	case int64:
		return literal("!!int", strconv.FormatInt(v, 10))
	case float64:
		return p.float(v)
	case []string:
		return p.sequence(len(v), func(i int) any { return v[i] }, depth)
	case []any:
		return p.sequence(len(v), func(i int) any { return v[i] }, depth)
	case map[string]any:
		return p.mapping(v, depth)
	}
	p.fail("a value of type %T has no place in a manifest", v)
	return literal("!!null", "null")
}

// float keeps a number a float when it is read again.
func (p *printer) float(f float64) *yaml.Node {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		p.fail("%v is not a number", f)
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return literal("!!float", s)
}

func (p *printer) sequence(n int, at func(int) any, depth int) *yaml.Node {
	seq := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range n {
		seq.Content = append(seq.Content, p.plain(at(i), depth+1))
	}
	return seq
}

func (p *printer) mapping(m map[string]any, depth int) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out.Content = append(out.Content, p.scalar(key), p.plain(m[key], depth+1))
	}
	return out
}

// document prints the frontmatter, delimiters included.
func (p *printer) document() ([]byte, error) {
	if *p.err != nil {
		return nil, *p.err
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(p.n); err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	b.WriteString("---\n")
	return b.Bytes(), nil
}
