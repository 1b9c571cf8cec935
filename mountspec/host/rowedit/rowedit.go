// Package rowedit changes the description of a workspace: its row, which is its entry of
// workspaces in the host configuration, and its WORKSPACE.md.
//
// It knows how each key of a row is written in a manifest, and reads and writes texts
// alone. It promises that the rest of a text stays as a person wrote it, as yamledit does,
// and that an id does not change. Its callers check whether the result is valid.
//
//	values, err := rowedit.Parse([]string{"name=Notes", "tags=[a, b]"})
//	config, err = rowedit.Row(config, address, values)
//	manifest, err = rowedit.Manifest(manifest, values)
package rowedit

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/yamledit"
)

// A Value is the new value of a key. A nil Node takes the key out.
type Value struct {
	Key  string
	Node *yaml.Node
}

// A form is how a key of a row is written.
type form struct {
	plain    bool     // its value is a text, even if it looks like another type
	path     []string // in a manifest
	required bool     // a manifest without it is none, and keeps its own
}

var forms = map[string]form{
	"name":        {plain: true, path: []string{"name"}, required: true},
	"description": {plain: true, path: []string{"description"}},
	"version":     {plain: true, path: []string{"version"}, required: true},
	"owner_id":    {plain: true, path: []string{"owner", "id"}, required: true},
	"owner_type":  {plain: true, path: []string{"owner", "type"}, required: true},
	"read_only":   {path: []string{"defaults", "read_only"}},
	"storage":     {path: []string{"storage"}, required: true},
	"identity":    {path: []string{"identity"}},
	"tags":        {path: []string{"tags"}},
	"code":        {path: []string{"code"}},
	"policy":      {path: []string{"policy"}},
}

// ErrID refuses another id (AIP-34, Conformance rules: id is immutable).
var ErrID = errors.New("an id does not change: a workspace with another one is a new workspace")

// Keys are those that can be changed.
func Keys() []string { return slices.Sorted(maps.Keys(forms)) }

// Parse reads words of the form KEY=VALUE, where VALUE is a text or, for a value that is no
// text, YAML. An empty VALUE takes the key out.
func Parse(words []string) ([]Value, error) {
	var out []Value
	for _, word := range words {
		key, text, ok := strings.Cut(word, "=")
		f, known := forms[key]
		switch {
		case !ok:
			return nil, fmt.Errorf("%.60q is not of the form KEY=VALUE", word)
		case key == "id":
			return nil, ErrID
		case !known:
			return nil, fmt.Errorf("unknown key %.60q", key)
		case slices.ContainsFunc(out, func(v Value) bool { return v.Key == key }):
			return nil, fmt.Errorf("%s is there twice", key)
		}
		v := Value{Key: key}
		if f.plain && text != "" {
			v.Node = yamledit.Scalar(text)
		} else if text != "" {
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
				return nil, fmt.Errorf("the value of %s is no YAML: %w", key, err)
			}
			v.Node = doc.Content[0]
		}
		out = append(out, v)
	}
	return out, nil
}

// set is yamledit.Set, but leaves an equal value as it is written.
func set(text []byte, path []string, n *yaml.Node) ([]byte, error) {
	var is, becomes any
	if has, err := yamledit.At(text, path); err == nil && has != nil && n != nil && has.Decode(&is) == nil && n.Decode(&becomes) == nil && reflect.DeepEqual(is, becomes) {
		return text, nil
	}
	return yamledit.Set(text, path, n)
}

// Row changes the entry of a workspace in a host configuration that has one.
func Row(config []byte, a mountspec.Address, values []Value) ([]byte, error) {
	entry := []string{"workspaces", a.String()}
	n, err := yamledit.At(config, entry)
	if err == nil && n == nil {
		err = fmt.Errorf("it has no entry of %s", a)
	}
	if err == nil && n.Kind == yaml.ScalarNode { // the path alone
		path := *n
		path.LineComment = ""
		config, err = yamledit.Set(config, entry, yamledit.Mapping("path", &path))
	}
	for _, v := range values {
		if err == nil {
			config, err = set(config, append(slices.Clone(entry), v.Key), v.Node)
		}
	}
	return config, err
}

// Manifest changes a WORKSPACE.md. The text below its frontmatter stays.
func Manifest(text []byte, values []Value) ([]byte, error) {
	from, to, ok := mountspec.Frontmatter(text)
	if !ok {
		return nil, errors.New("it has no frontmatter")
	}
	front, err := text[from:to], error(nil)
	for _, v := range values {
		f := forms[v.Key]
		if err != nil || v.Node == nil && f.required {
			continue
		}
		front, err = set(front, f.path, InManifest(v.Key, v.Node))
	}
	return slices.Concat(text[:from], front, text[to:]), err
}

// InManifest is the value of a key of a row as a manifest has it: a storage that is
// written out stands under the key inline.
func InManifest(key string, n *yaml.Node) *yaml.Node {
	if key == "storage" && n != nil && yamledit.Has(n, "provider") {
		return yamledit.Mapping("inline", n)
	}
	return n
}
