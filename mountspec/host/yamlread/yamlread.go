// Package yamlread reads a YAML document of which every key is known, and collects all of
// its errors, each with its line and what to do, rather than stopping at the first.
//
//	findings := yamlread.Document("config.yaml", data, func(v yamlread.Node) {
//		v.Object(yamlread.Fields{"name": func(n yamlread.Node) { n.Into(&name) }})
//	})
//
// It does not know the meaning of values. It refuses anchors, aliases, merges and keys that
// occur twice: only values that a person reads in the text may count.
package yamlread

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/near"
	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// A reader is one reading of a document.
type reader struct {
	name     string
	findings mountspec.Findings
}

// A Node is a value of the document, with the path that leads to it.
type Node struct {
	YAML *yaml.Node
	r    *reader
	path string

	outline *jsonschema.Schema // not nil: it stands for every valid value, and YAML is empty
}

// Fields say how each key of a mapping is read.
type Fields map[string]func(Node)

// Document reads the one mapping of a document, which may be empty, and returns the
// findings, from its top to its end.
func Document(name string, data []byte, read func(Node)) mountspec.Findings {
	r := &reader{name: name}
	if v, ok := r.document(data); ok {
		read(v)
	}
	slices.SortStableFunc(r.findings, func(a, b mountspec.Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.findings
}

// Fail records that the value is wrong, by which rule, and a hint for the user.
func (v Node) Fail(rule, hint, format string, args ...any) {
	if v.described() {
		return // a description has no errors
	}
	f := mountspec.Finding{File: v.r.name, Path: v.path, Rule: rule, Hint: hint, Message: fmt.Sprintf(format, args...), Line: 1, Column: 1}
	if v.YAML != nil {
		f.Line, f.Column = v.YAML.Line, v.YAML.Column
	}
	if len(v.r.findings) < 100 {
		v.r.findings = append(v.r.findings, f)
	}
}

// Check keeps an error that another package found in a value.
func (v Node) Check(rule, hint string, err error) bool {
	if err != nil {
		v.Fail(rule, hint, "%v", err)
	}
	return err == nil || v.described()
}

// Object reads a mapping whose keys are all known.
func (v Node) Object(f Fields) {
	if v.described() {
		v.describe(f)
		return
	}
	v.Each(func(key string, at, val Node) {
		read, ok := f[key]
		if !ok {
			known := slices.Sorted(maps.Keys(f))
			at.Fail("unknown-key", near.Hint(key, known, "the keys here are "+strings.Join(known, ", ")), "unknown key %.60q", key)
			return
		}
		read(val)
	})
}

// Each reads a mapping with free keys. Keys that occur twice, aliases
// and merges are findings.
func (v Node) Each(f func(key string, at, val Node)) {
	if v.described() {
		v.describeEach(f)
		return
	}
	if v.YAML.Kind != yaml.MappingNode {
		v.Fail("type", "write key: value", "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.YAML.Content); i += 2 {
		k, val := v.YAML.Content[i], v.YAML.Content[i+1]
		at := Node{YAML: k, r: v.r, path: v.path}
		switch {
		case k.Kind != yaml.ScalarNode || k.Tag == "!!merge":
			at.Fail("type", "write a plain key", "must be a plain key")
		case seen[k.Value]:
			at.Fail("duplicate-key", "keep one", "%.60q is there twice", k.Value)
		default:
			seen[k.Value] = true
			f(k.Value, at, Node{YAML: val, r: v.r, path: join(v.path, k.Value)})
		}
	}
}

// Items reads a list.
func (v Node) Items(f func(Node)) {
	if v.described() {
		v.describeItems(f)
		return
	}
	if v.YAML.Kind != yaml.SequenceNode {
		v.Fail("type", "write [a, b]", "must be a list")
		return
	}
	for i, n := range v.YAML.Content {
		f(Node{YAML: n, r: v.r, path: fmt.Sprintf("%s[%d]", v.path, i)})
	}
}

// Text reads a scalar as it is written, whichever type YAML would give it.
func (v Node) Text() (string, bool) {
	if v.described() {
		v.describeText()
		return "", false
	}
	if v.YAML.Kind != yaml.ScalarNode || v.YAML.Tag == "!!null" || v.YAML.Value == "" {
		v.Fail("type", "write one value", "must be text and not empty")
		return "", false
	}
	if strings.ContainsFunc(v.YAML.Value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		v.Fail("control-character", "remove it", "must not hold a control character")
		return "", false
	}
	return v.YAML.Value, true
}

// Texts reads a list of texts.
func (v Node) Texts() []string {
	out := []string{}
	v.Items(func(n Node) {
		if s, ok := n.Text(); ok {
			out = append(out, s)
		}
	})
	return out
}

// Into reads a text; "" if there is none.
func (v Node) Into(s *string) { *s, _ = v.Text() }

// MaybeEmpty reads a text that has a meaning when it is empty, too.
func (v Node) MaybeEmpty() (string, bool) {
	if v.YAML.Kind == yaml.ScalarNode && v.YAML.Tag == "!!str" && v.YAML.Value == "" {
		return "", true
	}
	return v.Text()
}

// Bool reads true or false.
func (v Node) Bool() (val, ok bool) {
	if v.described() {
		v.outline.Type = jsonschema.Types{"boolean", "string"}
		return false, false
	}
	word, ok := v.OneOf("true", "false")
	return word == "true", ok
}

// Integer reads a positive number.
func (v Node) Integer() (int64, bool) {
	if v.described() {
		least := int64(1)
		v.outline.Type, v.outline.Minimum = jsonschema.Types{"integer"}, &least
		return 0, false
	}
	var i int64
	if v.YAML.Kind != yaml.ScalarNode || v.YAML.Tag != "!!int" || v.YAML.Decode(&i) != nil || i <= 0 {
		v.Fail("type", "write a number", "must be a positive number")
		return 0, false
	}
	return i, true
}

// OneOf reads one of some words.
func (v Node) OneOf(words ...string) (string, bool) {
	s, ok := v.Text()
	if v.described() {
		*v.outline = jsonschema.Schema{Type: jsonschema.Types{"string"}, Enum: words}
	}
	if ok && !slices.Contains(words, s) {
		v.Fail("unknown-value", near.Hint(s, words, "write one of "+strings.Join(words, ", ")), "%.60q is not known here", s)
		return "", false
	}
	return s, ok
}

// IsMapping says whether the value has keys.
func (v Node) IsMapping() bool { return v.YAML.Kind == yaml.MappingNode }

// Either reads a value that may be a mapping or something else.
func (v Node) Either(mapping, other func(Node)) {
	switch {
	case v.described():
		v.describeForms(other, mapping)
	case v.IsMapping():
		mapping(v)
	default:
		other(v)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// document parses data into its one mapping; nil when there is none.
func (r *reader) document(data []byte) (Node, bool) {
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	if err := dec.Decode(&doc); err != nil {
		if err.Error() == "EOF" { // an empty file is an empty configuration
			return Node{}, false
		}
		Node{r: r}.Fail("yaml", "correct the YAML", "%v", err)
		return Node{}, false
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		Node{r: r, YAML: &more}.Fail("yaml", "keep one document", "a second document")
		return Node{}, false
	}
	v := Node{r: r, YAML: doc.Content[0]}
	return v, r.plain(v.YAML) && !(v.YAML.Kind == yaml.ScalarNode && v.YAML.Tag == "!!null")
}

// plain refuses anchors and aliases: they can make a short file huge.
func (r *reader) plain(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		Node{r: r, YAML: n}.Fail("alias", "write the value out", "anchors and aliases are not read")
		return false
	}
	for _, c := range n.Content {
		if !r.plain(c) {
			return false
		}
	}
	return true
}
