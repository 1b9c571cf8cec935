// Package configedit adds a value to the text of a host configuration. The parts that a
// person wrote stay, as with yamledit.
//
//	text, err = configedit.Add(text, configedit.Addition{Path: []string{"allow_endpoints"}, Value: `"https://minio.acme.test"`, Item: true})
package configedit

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec/host/yamledit"
)

// An Addition is a value that the configuration is to have at a path of keys, or an item of
// the list at that path.
type Addition struct {
	Path  []string
	Value string // YAML, on one line
	Item  bool
}

// Key is the place of the addition.
func (a Addition) Key() string { return strings.Join(a.Path, ".") }

// Text is a text as a value of YAML, whichever characters it has.
func Text(s string) string {
	quoted, _ := json.Marshal(s) // no string fails
	return string(quoted)
}

// A Contradiction is another value where one is to be added.
type Contradiction struct{ Key, Is, Wanted string }

func (c *Contradiction) Error() string {
	return c.Key + " is " + c.Is + " already, and would be " + c.Wanted
}

// Add is text with the addition. A text that has that value already stays as it is, and one
// with another value is a *Contradiction.
func Add(text []byte, a Addition) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(a.Value), &doc); err != nil || len(doc.Content) == 0 {
		return nil, errors.Join(errors.New("the value is no YAML"), err)
	}
	value := doc.Content[0]
	is, err := yamledit.At(text, a.Path)
	switch {
	case err != nil:
		return nil, err
	case is == nil && a.Item:
		return yamledit.Set(text, a.Path, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle, Content: []*yaml.Node{value}})
	case is == nil:
		return yamledit.Set(text, a.Path, value)
	case !a.Item && same(is, value), a.Item && is.Kind == yaml.SequenceNode && slices.ContainsFunc(is.Content, func(n *yaml.Node) bool { return same(n, value) }):
		return text, nil
	case !a.Item || is.Kind != yaml.SequenceNode:
		return nil, &Contradiction{a.Key(), oneLine(is), a.Value}
	}
	longer := *is
	longer.Content = append(slices.Clone(is.Content), value)
	return yamledit.Set(text, a.Path, &longer)
}

func same(a, b *yaml.Node) bool {
	var x, y any
	return errors.Join(a.Decode(&x), b.Decode(&y)) == nil && reflect.DeepEqual(x, y)
}

// oneLine is a value on one line.
func oneLine(n *yaml.Node) string {
	c := *n
	if c.Kind != yaml.ScalarNode {
		c.Style = yaml.FlowStyle
	}
	text, err := yaml.Marshal(&c)
	if err != nil {
		return n.Value
	}
	return strings.Join(strings.Fields(string(text)), " ")
}
