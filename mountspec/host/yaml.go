package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec"
)

// A reader walks a YAML document and collects findings. It never stops at
// the first.
type reader struct {
	name     string
	findings mountspec.Findings
}

// A node is a value of the document with the path that leads to it.
type node struct {
	r    *reader
	n    *yaml.Node
	path string
}

// A fields table says how each key of a mapping is read.
type fields map[string]func(node)

func (v node) fail(rule, hint, format string, args ...any) {
	f := mountspec.Finding{File: v.r.name, Path: v.path, Rule: rule, Hint: hint, Message: fmt.Sprintf(format, args...), Line: 1, Column: 1}
	if v.n != nil {
		f.Line, f.Column = v.n.Line, v.n.Column
	}
	if len(v.r.findings) < 100 {
		v.r.findings = append(v.r.findings, f)
	}
}

// check keeps an error that another package found in a value.
func (v node) check(rule, hint string, err error) bool {
	if err != nil {
		v.fail(rule, hint, "%v", err)
	}
	return err == nil
}

// object reads a mapping whose keys are all known.
func (v node) object(f fields) {
	v.each(func(key string, at, val node) {
		read, ok := f[key]
		if !ok {
			known := slices.Sorted(maps.Keys(f))
			at.fail("unknown-key", didYouMean(key, known, "the keys here are "+strings.Join(known, ", ")), "unknown key %.60q", key)
			return
		}
		read(val)
	})
}

// each reads a mapping with free keys. Keys that are there twice, aliases
// and merges are findings.
func (v node) each(f func(key string, at, val node)) {
	if v.n.Kind != yaml.MappingNode {
		v.fail("type", "write key: value", "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(v.n.Content); i += 2 {
		k, val := v.n.Content[i], v.n.Content[i+1]
		at := node{v.r, k, v.path}
		switch {
		case k.Kind != yaml.ScalarNode || k.Tag == "!!merge":
			at.fail("type", "write a plain key", "must be a plain key")
		case seen[k.Value]:
			at.fail("duplicate-key", "keep one", "%.60q is there twice", k.Value)
		default:
			seen[k.Value] = true
			f(k.Value, at, node{v.r, val, join(v.path, k.Value)})
		}
	}
}

func (v node) items(f func(node)) {
	if v.n.Kind != yaml.SequenceNode {
		v.fail("type", "write [a, b]", "must be a list")
		return
	}
	for i, n := range v.n.Content {
		f(node{v.r, n, fmt.Sprintf("%s[%d]", v.path, i)})
	}
}

// text reads a scalar as it is written, whatever type YAML would give it.
func (v node) text() (string, bool) {
	if v.n.Kind != yaml.ScalarNode || v.n.Tag == "!!null" || v.n.Value == "" {
		v.fail("type", "write one value", "must be text and not empty")
		return "", false
	}
	if strings.ContainsFunc(v.n.Value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		v.fail("control-character", "remove it", "must not hold a control character")
		return "", false
	}
	return v.n.Value, true
}

func (v node) texts() []string {
	out := []string{}
	v.items(func(n node) {
		if s, ok := n.text(); ok {
			out = append(out, s)
		}
	})
	return out
}

func (v node) into(s *string) { *s, _ = v.text() }

func (v node) integer() (int64, bool) {
	var i int64
	if v.n.Kind != yaml.ScalarNode || v.n.Tag != "!!int" || v.n.Decode(&i) != nil || i <= 0 {
		v.fail("type", "write a number", "must be a positive number")
		return 0, false
	}
	return i, true
}

func (v node) oneOf(words ...string) (string, bool) {
	s, ok := v.text()
	if ok && !slices.Contains(words, s) {
		v.fail("unknown-value", didYouMean(s, words, "write one of "+strings.Join(words, ", ")), "%.60q is not known here", s)
		return "", false
	}
	return s, ok
}

func (v node) isMapping() bool { return v.n.Kind == yaml.MappingNode }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// document parses data into its one mapping; nil when there is none.
func (r *reader) document(data []byte) (node, bool) {
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	if err := dec.Decode(&doc); err != nil {
		if err.Error() == "EOF" { // an empty file is an empty configuration
			return node{}, false
		}
		node{r: r}.fail("yaml", "correct the YAML", "%v", err)
		return node{}, false
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		node{r: r, n: &more}.fail("yaml", "keep one document", "a second document")
		return node{}, false
	}
	v := node{r: r, n: doc.Content[0]}
	return v, r.plain(v.n) && !(v.n.Kind == yaml.ScalarNode && v.n.Tag == "!!null")
}

// plain refuses anchors and aliases: they can make a short file huge.
func (r *reader) plain(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		node{r: r, n: n}.fail("alias", "write the value out", "anchors and aliases are not read")
		return false
	}
	for _, c := range n.Content {
		if !r.plain(c) {
			return false
		}
	}
	return true
}
