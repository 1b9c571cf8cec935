package mountspec

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// object reads a mapping. Every key that is asked for is known; closed reports
// the others. The zero object is an absent one: all its keys are absent.
type object struct {
	value
	fields map[string]value
	order  []string
	keys   map[string]value
	known  []string
}

// object returns the mapping, and false after reporting that it is none.
func (v value) object() (*object, bool) {
	o := &object{value: v, fields: map[string]value{}, keys: map[string]value{}}
	if v.described() {
		v.outline.Type = jsonschema.Types{"object"}
		return o, true
	}
	if !v.present() {
		return o, false
	}
	if v.n.Kind != yaml.MappingNode {
		v.wrong("a mapping")
		return o, false
	}
	for i := 0; i+1 < len(v.n.Content); i += 2 {
		key, val := v.n.Content[i], v.n.Content[i+1]
		if v.d.bad[key] {
			continue
		}
		at := join(v.path, key.Value)
		o.fields[key.Value] = value{d: v.d, n: val, path: at, code: v.code}
		o.keys[key.Value] = value{d: v.d, n: key, path: at, code: v.code}
		o.order = append(o.order, key.Value)
	}
	return o, true
}

// get returns the value of a key, absent when the mapping has none.
func (o *object) get(key string) value {
	if !slices.Contains(o.known, key) {
		o.known = append(o.known, key)
	}
	if o.described() {
		return o.within(o.outline.Property(key))
	}
	return o.fields[key]
}

// has reports whether a key is given; where the mapping is described, whether it is the one
// by which its form is known.
func (o *object) has(key string) bool {
	if o.described() {
		return o.outline.key == key
	}
	return o.get(key).n != nil
}

// need reports a missing key, and returns its value.
func (o *object) need(key string) value {
	v := o.get(key)
	if v.described() && !slices.Contains(o.outline.choice, key) && !slices.Contains(o.outline.Required, key) {
		o.outline.Required = append(o.outline.Required, key)
	}
	if !v.given() {
		hint := ""
		unknown := o.unknown()
		if near := nearest(key, unknown[:min(len(unknown), maxFindings)]); near != "" {
			hint = "did you mean it by " + show(near) + "?"
		}
		o.fail("missing-key", hint, "the key %s is missing", key)
	}
	return v
}

func (o *object) text(key string) string {
	s, _ := o.get(key).text()
	return s
}

func (o *object) prose(key string, most int) string {
	v := o.get(key)
	s, _ := v.prose()
	v.length(s, 0, most)
	return s
}

// needText returns a text of at least one character, and false after reporting
// why there is none.
func (o *object) needText(key string) (string, bool) {
	v := o.need(key)
	s, ok := v.text()
	return s, ok && v.filled(s)
}

// someText is needText for a key that may be absent.
func (o *object) someText(key string) (string, bool) {
	v := o.get(key)
	s, ok := v.text()
	return s, ok && v.filled(s)
}

// filled reports an empty text.
func (v value) filled(s string) bool {
	if v.described() {
		v.outline.MinLength = max(v.outline.MinLength, 1)
		return true
	}
	if s == "" {
		v.fail("empty-value", "give it a value or remove the key", "is empty")
		return false
	}
	return true
}

// length counts characters, as JSON Schema does.
func (v value) length(s string, least, most int) {
	if v.described() {
		v.outline.MinLength, v.outline.MaxLength = max(v.outline.MinLength, least), most
		return
	}
	if n := utf8.RuneCountInString(s); n < least || n > most {
		v.fail("length", "", "must have %d to %d characters, and has %d", least, most, n)
	}
}

func (o *object) boolean(key string) bool {
	b, _ := o.get(key).boolean()
	return b
}

// oneOf returns a text out of a closed list, or the empty string.
func (o *object) oneOf(key string, allowed ...string) string { return o.get(key).word(allowed...) }

// word reads a text out of a closed list.
func (v value) word(allowed ...string) string {
	s, ok := v.text()
	if v.described() {
		v.outline.Type, v.outline.Enum = jsonschema.Types{"string"}, allowed
		return ""
	}
	if !ok || slices.Contains(allowed, s) {
		return s
	}
	hint := ""
	if near := nearest(s, allowed); near != "" {
		hint = "did you mean " + near + "?"
	}
	v.fail("not-allowed", hint, "must be %s, and not %s", alternatives(allowed), show(s))
	return ""
}

func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// texts returns a list of texts; an element that is none is reported and left out.
func (o *object) texts(key string) []string {
	v := o.get(key)
	if !v.present() {
		return nil
	}
	out := []string{}
	for _, item := range v.items() {
		if s, ok := item.text(); ok {
			out = append(out, s)
		}
	}
	return out
}

// open returns a free mapping as plain Go values, nil when absent.
func (o *object) open(key string) map[string]any {
	child, ok := o.get(key).object()
	if !ok {
		return nil
	}
	return child.rest()
}

// rest returns every key that was not asked for, as plain Go values.
func (o *object) rest() map[string]any {
	out := map[string]any{}
	for _, key := range o.order {
		if !slices.Contains(o.known, key) {
			out[key] = o.fields[key].plain()
		}
	}
	return out
}

// unknown lists the keys that were not asked for.
func (o *object) unknown() []string {
	var out []string
	for _, key := range o.order {
		if !slices.Contains(o.known, key) {
			out = append(out, key)
		}
	}
	return out
}

// closed refuses every key that was not asked for.
func (o *object) closed() { o.closedAs(Error) }

func (o *object) closedAs(s Severity) {
	if o.described() {
		o.outline.Closed = s == Error
	}
	for _, key := range o.unknown() {
		if len(o.d.findings) > maxFindings {
			return
		}
		at := o.keys[key]
		if o.d.bad[o.fields[key].n] {
			continue // a credential or a malformed value: said already
		}
		hint := "known here: " + strings.Join(o.known, ", ")
		if near := nearest(key, o.known); near != "" {
			hint = "did you mean " + near + "?"
		}
		at.report(s, "unknown-key", hint, "unknown key "+show(key))
	}
}

// plain turns a node into string, int64, float64, bool, nil, []any or
// map[string]any. Anything that YAML parsers read in different ways (dates,
// octal, infinities) stays the author's text.
func (v value) plain() any {
	if !v.present() {
		return nil
	}
	switch v.n.Kind {
	case yaml.MappingNode:
		o, _ := v.object()
		return o.rest()
	case yaml.SequenceNode:
		out := make([]any, len(v.n.Content))
		for i, item := range v.items() {
			out[i] = item.plain()
		}
		return out
	}
	return v.plainScalar()
}

func (v value) plainScalar() any {
	switch v.n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(v.n.Value, "true")
	case "!!int":
		if n, ok := smallInteger(v.n.Value); ok {
			return n
		}
	case "!!float":
		if f, ok := plainFloat(v.n.Value); ok && strings.ContainsAny(v.n.Value, ".eE") {
			return f
		}
	}
	return v.n.Value
}

func (v value) isMapping() bool {
	if v.described() {
		return v.outline.form == yaml.MappingNode
	}
	return v.present() && v.n.Kind == yaml.MappingNode
}
