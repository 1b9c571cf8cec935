package yamlread

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// The functions that read a document also describe it. Given a node that stands for every
// valid one, they find each key that they know, and no error; each read is recorded
// in a JSON Schema, which so is that of the documents that they read.

// Outline is the JSON Schema of the documents that read reads.
func Outline(read func(Node)) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	read(Node{r: &reader{}}.within(s, ""))
	return s
}

// described is whether a node stands for every valid one.
func (v Node) described() bool { return v.outline != nil }

func (v Node) within(s *jsonschema.Schema, path string) Node {
	return Node{YAML: &yaml.Node{}, r: v.r, path: path, outline: s}
}

// describe reads each key of a mapping that has those of f alone.
func (v Node) describe(f Fields) {
	v.outline.Type, v.outline.Closed = jsonschema.Types{"object"}, true
	for _, key := range slices.Sorted(maps.Keys(f)) {
		f[key](v.within(v.outline.Property(key), join(v.path, key)))
	}
}

// AnyKey stands for a key that is free.
const AnyKey = "*"

func (v Node) describeEach(f func(key string, at, val Node)) {
	v.outline.Type, v.outline.Values = jsonschema.Types{"object"}, &jsonschema.Schema{}
	f(AnyKey, v.within(&jsonschema.Schema{}, v.path), v.within(v.outline.Values, join(v.path, AnyKey)))
}

func (v Node) describeItems(f func(Node)) {
	v.outline.Type, v.outline.Items = jsonschema.Types{"array"}, &jsonschema.Schema{}
	f(v.within(v.outline.Items, v.path))
}

func (v Node) describeForms(forms ...func(Node)) {
	for _, f := range forms {
		s := &jsonschema.Schema{}
		v.outline.AnyOf = append(v.outline.AnyOf, s)
		f(v.within(s, v.path))
	}
}

// describeText has the types that a text may seem to have to others.
func (v Node) describeText() {
	v.outline.Type, v.outline.MinLength = jsonschema.Types{"string", "number", "boolean"}, 1
}
