package mountspec

import "gopkg.in/yaml.v3"

// maxDepth is how deep a frontmatter may nest; no schema needs a quarter of it.
const maxDepth = 64

// checkTree refuses everything in the YAML that JSON could not say: a manifest
// must mean the same to every reader, and none of it may grow when read. Nodes
// that it refuses are marked, so that the typed reading passes over them.
func (d *decoder) checkTree(n *yaml.Node, path string, depth int) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.reject(n, path, "yaml-alias", "write the value out", "anchors and aliases are not accepted")
		if n.Kind == yaml.AliasNode {
			return
		}
	case n.Style&yaml.TaggedStyle != 0:
		d.reject(n, path, "yaml-tag", "remove the tag; quote the value if it is text", "the tag %s is not accepted", show(n.Tag))
		return
	case depth > maxDepth:
		d.reject(n, path, "too-deep", "", "nested deeper than %d levels", maxDepth)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		d.checkMapping(n, path, depth)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			d.checkTree(c, index(path, i), depth+1)
		}
	}
}

func (d *decoder) checkMapping(n *yaml.Node, path string, depth int) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !d.checkKey(key, path) {
			d.bad[value] = true
			continue
		}
		at := join(path, key.Value)
		if first, dup := seen[key.Value]; dup {
			d.reject(key, at, "duplicate-key", "keep one of the two", "the key is already on line %d", d.lineIn(first.Line))
		} else {
			seen[key.Value] = key
		}
		d.checkTree(value, at, depth+1)
	}
}

func (d *decoder) checkKey(key *yaml.Node, path string) bool {
	switch {
	case key.Kind == yaml.AliasNode || key.Anchor != "":
		d.reject(key, path, "yaml-alias", "write the key out", "anchors and aliases are not accepted")
	case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
		d.reject(key, path, "yaml-merge", "write the keys out", "merge keys (<<) are not accepted")
	case key.Style&yaml.TaggedStyle != 0:
		d.reject(key, path, "yaml-tag", "remove the tag", "the tag %s is not accepted", show(key.Tag))
	case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
		d.reject(key, path, "key-not-text", "quote the key", "the key is not text")
	default:
		return true
	}
	return false
}

// reject reports a node and marks it, so that nothing else is said about it.
func (d *decoder) reject(n *yaml.Node, path, rule, hint, format string, args ...any) {
	d.bad[n] = true
	value{d: d, n: n, path: path}.fail(rule, hint, format, args...)
}

// scalarsOf lists the scalar values below a node.
func scalarsOf(n *yaml.Node) []*yaml.Node {
	switch n.Kind {
	case yaml.ScalarNode:
		return []*yaml.Node{n}
	case yaml.SequenceNode, yaml.MappingNode:
		var out []*yaml.Node
		for i, c := range n.Content {
			if n.Kind == yaml.SequenceNode || i%2 == 1 {
				out = append(out, scalarsOf(c)...)
			}
		}
		return out
	}
	return nil
}
