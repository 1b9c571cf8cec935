// Package yamledit changes one value of a YAML text that a person wrote, and leaves the
// rest as it was written.
//
// It knows text and where its values stand, and not their meaning. It promises:
//
//   - Only the lines of the smallest entry in block style that holds the value are
//     written anew; every other byte stays.
//   - Order, comments and the values beside it are kept. A text for which that cannot be
//     promised, which Set finds out by reading its result, is refused.
//
// One use:
//
//	text, err = yamledit.Set(text, []string{"workspaces", "@acme/ops", "name"}, yamledit.Scalar("Ops"))
package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Scalar is a text, quoted if it would be read as something else.
func Scalar(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(s)
	return n
}

// Mapping is a mapping of pairs, each a key and a *yaml.Node.
func Mapping(pairs ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i < len(pairs); i += 2 {
		Add(n, pairs[i].(string), pairs[i+1].(*yaml.Node))
	}
	return n
}

// Add puts a pair at the end of a mapping that does not have its key.
func Add(n *yaml.Node, key string, val *yaml.Node) { n.Content = append(n.Content, Scalar(key), val) }

// Has reports whether n is a mapping with a key.
func Has(n *yaml.Node, key string) bool { return indexOf(n, key) >= 0 }

// indexOf is where the pair of a key is in the content of a mapping, or -1.
func indexOf(n *yaml.Node, key string) int {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// At is the value that path leads to, by its keys; nil: there is none.
func At(text []byte, path []string) (*yaml.Node, error) {
	n, err := parse(text)
	return valueAt(n, path), err
}

func valueAt(n *yaml.Node, path []string) *yaml.Node {
	for _, key := range path {
		if n == nil || !Has(n, key) {
			return nil
		}
		n = n.Content[indexOf(n, key)+1]
	}
	return n
}

// errKept refuses a text that the YAML library would not write as it was read.
var errKept = errors.New("it is written in a way of which not all would be kept: change it by hand")

// Set makes val the value that path leads to, by its keys; mappings on the way are made.
// A nil val takes the pair out. The text is one document.
func Set(text []byte, path []string, val *yaml.Node) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	out, err := write(text, root, path, val)
	if err != nil {
		return nil, err
	}
	// The result is read again and compared with the intended one.
	got, err := parse(out)
	if err != nil {
		return nil, errKept
	}
	if root == nil {
		root = Mapping()
	}
	if err := put(root, path, val); err != nil {
		return nil, err
	}
	if !equal(root, got) || !includes(comments(got), comments(root)) {
		return nil, errKept
	}
	return out, nil
}

// parse is the one value of a text; nil: it is empty.
func parse(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	n := doc.Content[0]
	n.HeadComment = strings.TrimLeft(doc.HeadComment+"\n\n"+n.HeadComment, "\n")
	n.FootComment = strings.TrimRight(n.FootComment+"\n\n"+doc.FootComment, "\n")
	return n, nil
}

// write replaces the lines that hold the value.
func write(text []byte, root *yaml.Node, path []string, val *yaml.Node) ([]byte, error) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	from, to, indent, below := region(lines, root, path, val == nil)
	part := bytes.Join(lines[from:to], nil)
	n, err := parse(part)
	if err != nil {
		return nil, errKept
	}
	if n == nil {
		n = Mapping()
	}
	gone, err := yaml.Marshal(valueAt(n, path[below:]))
	if err != nil {
		return nil, err
	}
	if err := put(n, path[below:], val); err != nil {
		return nil, err
	}
	written, err := print(n, indent, bytes.Contains(part, []byte("\r\n")))
	if err != nil {
		return nil, err
	}
	for _, c := range remarks(part) { // the library drops some without a word
		if !bytes.Contains(written, c) && !bytes.Contains(gone, c) {
			return nil, errKept
		}
	}
	before := bytes.Join(lines[:from], nil)
	if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		before = append(before, '\n')
	}
	return slices.Concat(before, written, bytes.Join(lines[to:], nil)), nil
}

// region is which lines hold the value: those of the deepest pair on its path of which
// all that is around it is in block style, or none, at the end, for a new key of the
// whole text. The lines are a mapping, indented, in which the value is at path[below:]. A
// mapping of which the last pair goes is written anew: without lines it would be no mapping.
func region(lines [][]byte, root *yaml.Node, path []string, goes bool) (from, to, indent, below int) {
	from, to = len(lines), len(lines)
	switch {
	case root == nil:
		return from, to, 0, 0
	case root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0:
		return 0, to, 0, 0
	}
	end := to
	for depth, key := range path {
		i := indexOf(root, key)
		if i < 0 || goes && depth > 0 && depth == len(path)-1 && len(root.Content) == 2 {
			break
		}
		k := root.Content[i]
		if i+2 < len(root.Content) {
			end = root.Content[i+2].Line - 1
		}
		from, to, indent, below = k.Line-1, trim(lines, k.Line, end, k.Column-1), k.Column-1, depth
		if root = root.Content[i+1]; root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
			break
		}
	}
	return from, to, indent, below
}

// remarks are the ends of lines that look like comments.
func remarks(text []byte) (list [][]byte) {
	for line := range bytes.Lines(text) {
		if _, c, ok := bytes.Cut(append([]byte(" "), line...), []byte(" #")); ok {
			list = append(list, append([]byte("#"), bytes.TrimRight(c, " \t\r\n")...))
		}
	}
	return list
}

// trim leaves the lines that follow a pair out of it: empty lines, and comments that
// are not indented more than its key.
func trim(lines [][]byte, from, to, indent int) int {
	for ; to > from; to-- {
		line := bytes.TrimSpace(lines[to-1])
		left := len(lines[to-1]) - len(bytes.TrimLeft(lines[to-1], " "))
		if len(line) > 0 && (line[0] != '#' || left > indent) {
			break
		}
	}
	return to
}

// print writes a mapping whose lines are indented.
func print(n *yaml.Node, indent int, crlf bool) ([]byte, error) {
	if len(n.Content) == 0 {
		return nil, nil // nothing of the pairs is left
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(n), enc.Close()); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for line := range bytes.Lines(out.Bytes()) {
		if len(line) > 1 {
			b.WriteString(strings.Repeat(" ", indent))
		}
		b.Write(line)
	}
	if crlf {
		return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\r\n")), nil
	}
	return b.Bytes(), nil
}

// put is Set on nodes.
func put(n *yaml.Node, path []string, val *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%q is to be put into what is no mapping", path[0])
	}
	i := indexOf(n, path[0])
	switch {
	case i < 0 && val == nil:
	case i < 0 && len(path) == 1:
		Add(n, path[0], val)
	case i < 0:
		in := Mapping()
		Add(n, path[0], in)
		return put(in, path[1:], val)
	case len(path) > 1:
		return put(n.Content[i+1], path[1:], val)
	case val == nil:
		n.Content = slices.Delete(n.Content, i, i+2)
	default:
		old, with := n.Content[i+1], *val
		with.HeadComment, with.LineComment, with.FootComment = old.HeadComment, old.LineComment, old.FootComment
		switch {
		case old.Kind == val.Kind:
			with.Style |= old.Style
		case old.Kind == yaml.ScalarNode && with.Style&yaml.FlowStyle == 0: // which begins on the next line
			n.Content[i].LineComment, with.LineComment = old.LineComment, ""
		}
		n.Content[i+1] = &with
	}
	return nil
}

// equal compares values, however they are written.
func equal(a, b *yaml.Node) bool {
	return a != nil && b != nil && a.Kind == b.Kind && a.ShortTag() == b.ShortTag() && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, equal)
}

// comments are the words of all comments.
func comments(n *yaml.Node) (list []string) {
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		list = append(list, strings.Fields(c)...)
	}
	for _, c := range n.Content {
		list = append(list, comments(c)...)
	}
	return list
}

// includes reports whether all of want are in have, as often.
func includes(have, want []string) bool {
	count := map[string]int{}
	for _, s := range have {
		count[s]++
	}
	for _, s := range want {
		if count[s]--; count[s] < 0 {
			return false
		}
	}
	return true
}
