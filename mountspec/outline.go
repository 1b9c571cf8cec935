package mountspec

import (
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// The functions that read a manifest also describe it. Given a value that has an outline and no
// node, they find every key in it and no error, and each key that they read is recorded in a
// JSON Schema: so the schema always describes the keys that are read. For a form that depends
// on the value, they call forms, cases and the like, which give one value for each.

// outline is the record of a value.
type outline struct {
	*jsonschema.Schema
	form   yaml.Kind // the form that is described where there are several; 0: every form
	key    string    // the key by which the form is known
	choice []string  // keys of exactlyOne, which says itself when they are required
}

// described is whether a value stands for every one that is valid.
func (v value) described() bool { return v.outline != nil }

// given reports whether there is a value, right or wrong.
func (v value) given() bool { return v.n != nil || v.described() }

func (v value) within(s *jsonschema.Schema) value {
	return value{d: v.d, path: v.path, code: v.code, outline: &outline{Schema: s}}
}

// named has a value described once, under a name, however often it occurs. known
// says that it was.
func (v value) named(name string) (named value, known bool) {
	if !v.described() {
		return v, false
	}
	v.outline.Ref = "#/definitions/" + name
	s, known := v.d.definitions[name]
	if !known {
		s = &jsonschema.Schema{}
		v.d.definitions[name] = s
	}
	return v.within(s), known
}

// forms are the value itself, or, where it is described, one for each form that it may have.
func (v value) forms(kinds ...yaml.Kind) []value {
	if !v.described() {
		return []value{v}
	}
	var out []value
	for _, k := range kinds {
		s := &jsonschema.Schema{}
		v.outline.AnyOf = append(v.outline.AnyOf, s)
		f := v.within(s)
		f.outline.form = k
		out = append(out, f)
	}
	return out
}

// cases are the mapping itself, or, where it is described, one that has the first of the
// keys, one that has the second, and so on, and one that has none.
func (v value) cases(keys ...string) []value {
	if !v.described() {
		return []value{v}
	}
	var out []value
	at := v.outline.Schema
	at.Type = jsonschema.Types{"object"}
	for _, key := range keys {
		at.If, at.Then, at.Else = jsonschema.Has(key), &jsonschema.Schema{}, &jsonschema.Schema{}
		f := v.within(at.Then)
		f.outline.key = key
		out, at = append(out, f), at.Else
	}
	return append(out, v.within(at))
}

// exactlyOne reports whether exactly one of some keys is given. Where a form has several
// keys, parted by blanks, all of which it needs, any of them counts as the form.
func (o *object) exactlyOne(forms ...string) bool {
	n := 0
	for _, form := range forms {
		keys := strings.Fields(form)
		if o.described() {
			o.outline.OneOf = append(o.outline.OneOf, jsonschema.Has(keys...))
			o.outline.choice = append(o.outline.choice, keys...)
		} else if slices.ContainsFunc(keys, o.has) {
			n++
		}
	}
	return n == 1 || o.described()
}

// atLeastOne reports whether at least one of some keys is given.
func (o *object) atLeastOne(keys ...string) bool {
	for _, key := range keys {
		if o.described() {
			o.outline.AnyOf = append(o.outline.AnyOf, jsonschema.Has(key))
		}
	}
	return o.described() || slices.ContainsFunc(keys, o.has)
}

// none reports whether a value is given that may not be.
func (v value) none() bool {
	if v.described() {
		v.outline.Not = &jsonschema.Schema{}
	}
	return v.n != nil
}

// matches reports whether a text, which v is, is as it has to be.
func (v value) matches(re *regexp.Regexp, s string) bool {
	if v.described() {
		if v.outline.Pattern = re.String(); !re.MatchString("1") {
			v.outline.Type = jsonschema.Types{"string"} // no number is such a text
		}
		return true
	}
	return re.MatchString(s)
}

// someItems are the elements of a list that may not be empty.
func (v value) someItems(hint, message string) []value {
	items := v.items()
	if v.described() {
		v.outline.MinItems = 1
	} else if items != nil && len(items) == 0 {
		v.fail("empty-value", hint, "%s", message)
	}
	return items
}

// oneOrMore are the entries of a block that is one mapping, or a list of them.
func (v value) oneOrMore(hint string) (out []value) {
	for _, f := range v.forms(yaml.MappingNode, yaml.SequenceNode) {
		if f.isMapping() {
			out = append(out, f)
		} else {
			out = append(out, f.someItems(hint, "the list is empty")...)
		}
	}
	return out
}
