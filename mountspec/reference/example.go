package reference

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

//go:embed examples
var examples embed.FS

// A document is an example: a file, and its parsed content.
type document struct {
	name, text string
	root       *yaml.Node
}

// documents are the examples of a page.
func documents(page string) ([]document, error) {
	names, err := fs.Glob(examples, "examples/"+page+"/*")
	if err != nil {
		return nil, err
	}
	var out []document
	for _, name := range names {
		data, err := examples.ReadFile(name)
		if err != nil {
			return nil, err
		}
		d := document{name: name[strings.LastIndex(name, "/")+1:], text: string(data)}
		var doc yaml.Node
		if err := yaml.Unmarshal(frontmatter(data), &doc); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d.root = doc.Content[0]
		out = append(out, d)
	}
	return out, nil
}

// frontmatter is that of a manifest; the whole of another file.
func frontmatter(data []byte) []byte {
	if from, to, ok := mountspec.Frontmatter(data); ok {
		return data[from:to]
	}
	return data
}

// kind is the section that a file is the root of.
func (d document) kind() string {
	if strings.HasSuffix(d.name, "facts.yaml") {
		return "facts"
	}
	return cmp.Or(mountspec.KindOf(d.name), "config")
}

// places are where the blocks of a section stand in a file.
var places = map[string][]string{
	"mount":    {"metadata.wsmount.mounts"},
	"source":   {"sources"},
	"identity": {"identity"},
	"policy":   {"policy"},
}

// example shows a key as the document does that has it in the shortest form, from the top of
// its section, on a line that can be copied. A key that nests has none.
func example(docs []document, s section, path string, k *key) (shortest string) {
	if k.nests() {
		return ""
	}
	path = plain(path)
	if k.free() {
		path += ".*"
	}
	kind, provider, _ := strings.Cut(s.name, " ")
	for _, d := range docs {
		if p := find(d.root, "provider"); provider != "" && (p == nil || p.node.Value != provider) {
			continue
		}
		for _, block := range d.blocks(kind) {
			f := find(block, path)
			if f == nil {
				continue
			}
			if line := f.line(); shortest == "" || len(line) < len(shortest) {
				shortest = line
			}
		}
	}
	return shortest
}

// blocks are the mappings of a document that a section is about.
func (d document) blocks(section string) []*yaml.Node {
	if d.kind() == section {
		return []*yaml.Node{d.root}
	}
	var out []*yaml.Node
	for _, at := range places[section] {
		if f := find(d.root, at); f != nil {
			out = append(out, f.node)
		}
	}
	return out
}

// nests is whether a key has keys of its own, each of which has an example, or is a block
// that has a section of its own.
func (k *key) nests() bool {
	for _, s := range k.schemas {
		for s.Items != nil {
			s = s.Items
		}
		if s.Ref == "" && (len(s.AnyOf) > 0 || !slices.ContainsFunc(slices.Collect(maps.Values(s.Properties)), isTaken)) {
			return false
		}
	}
	return true
}

// isTaken is whether a key is no refused one.
func isTaken(s *jsonschema.Schema) bool { return s.Not == nil }

// free is whether a key has a mapping whose keys are free: then its first one will do.
func (k *key) free() bool { return k.schemas[0].Values != nil }

// A hit is a value, and the keys that lead to it.
type hit struct {
	node *yaml.Node
	path []string // keys; [] is an element of a list
}

// find is the first value at a path.
func find(n *yaml.Node, path string) *hit {
	steps := strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".")
	return follow(n, steps, nil)
}

func follow(n *yaml.Node, steps, way []string) *hit {
	if len(steps) == 0 {
		return &hit{n, way}
	}
	way = way[:len(way):len(way)]
	if n.Kind == yaml.SequenceNode {
		rest := steps
		if steps[0] == "[]" {
			rest = steps[1:]
		}
		for _, item := range n.Content {
			if f := follow(item, rest, append(way, "[]")); f != nil {
				return f
			}
		}
		return nil
	}
	if n.Kind != yaml.MappingNode || steps[0] == "[]" {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i].Value; steps[0] == "*" || steps[0] == key {
			if f := follow(n.Content[i+1], steps[1:], append(way, key)); f != nil {
				return f
			}
		}
	}
	return nil
}

// line prints the value with the keys that lead to it.
func (f *hit) line() string {
	n := flow(f.node)
	for i := len(f.path) - 1; i >= 0; i-- {
		around := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: []*yaml.Node{n}}
		if key := f.path[i]; key != "[]" {
			around = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
			around.Content = []*yaml.Node{{Kind: yaml.ScalarNode, Value: key, Style: quoted(key)}, n}
		}
		n = around
	}
	n.Style = 0 // the first key stands without braces
	text, err := yaml.Marshal(n)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func quoted(key string) yaml.Style {
	if strings.HasPrefix(key, "@") || strings.Contains(key, "://") {
		return yaml.DoubleQuotedStyle
	}
	return 0
}

// flow is a copy of a value that prints on one line.
func flow(n *yaml.Node) *yaml.Node {
	c := *n
	c.HeadComment, c.LineComment, c.FootComment = "", "", ""
	switch c.Content = nil; {
	case n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode:
		c.Style = yaml.FlowStyle
	case strings.Contains(n.Value, "\n"):
		c.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		c.Content = append(c.Content, flow(child))
	}
	return &c
}
