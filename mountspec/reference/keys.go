package reference

import (
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// keys are the keys of each section, by path. A block that several files have is a section of
// its own, by its name among the definitions; keys of one provider alone are in the section
// "storage NAME".
type keys map[string]map[string]*key

// A key is one key of a section, with its schemas.
type key struct {
	schemas  []*jsonschema.Schema // in each form that the mapping around it may have
	required bool
}

// walk collects the keys that a schema has at a path.
func (k keys) walk(section, path string, s *jsonschema.Schema) {
	visit(section, path, s, k.add)
}

func (k keys) add(section, path string, s *jsonschema.Schema, required bool) {
	if k[section] == nil {
		k[section] = map[string]*key{}
	}
	if k[section][path] == nil {
		k[section][path] = &key{}
	}
	f := k[section][path]
	f.schemas, f.required = append(f.schemas, s), f.required || required
}

// visit calls f with each key that a schema has at a path, and in which section.
func visit(section, path string, s *jsonschema.Schema, f func(section, path string, s *jsonschema.Schema, required bool)) {
	if s == nil {
		return
	}
	for name, p := range s.Properties {
		if !isTaken(p) {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		f(section, at, p, slices.Contains(s.Required, name))
		visit(section, at, p, f)
	}
	visit(section, path+".*", s.Values, f)
	visit(section, path+"[]", s.Items, f)
	for _, form := range s.AnyOf {
		if form.Items != nil && len(s.AnyOf) > 1 {
			form = form.Items // one, or a list of such: the keys are the same
		}
		visit(section, path, form, f)
	}
	for _, form := range s.AllOf {
		if p, is := providerOf(form); is {
			visitProvider(section+" "+p, form.Then, f)
		} else {
			visit(section, path, form, f)
		}
	}
	visit(section, path, s.Then, f)
	visit(section, path, s.Else, f)
}

// providerOf is the provider of storage whose rules a schema has.
func providerOf(s *jsonschema.Schema) (string, bool) {
	if s.If == nil || s.Then == nil || s.If.Properties["provider"] == nil {
		return "", false
	}
	return s.If.Properties["provider"].Const, true
}

// visitProvider is about the config of a provider, and the words of sync that it takes.
func visitProvider(section string, s *jsonschema.Schema, f func(section, path string, s *jsonschema.Schema, required bool)) {
	visit(section, "config", s.Properties["config"], f)
	if sync := s.Properties["sync"]; sync != nil {
		f(section, "sync.mode", sync.Properties["mode"], false)
		f(section, "sync.conflict.policy", sync.Properties["conflict"].Properties["policy"], false)
	}
}

// kind describes the values that a key takes.
func (k *key) kind() string {
	var words []string
	for _, s := range k.schemas {
		words = append(words, alternatives(s)...)
	}
	return joined(words)
}

// joined lists alternatives, each once.
func joined(words []string) string {
	var out []string
	for _, w := range words {
		if w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", or ")
}

// blocks are the definitions, as a page names such a value.
var blocks = map[string]string{
	"storage": "a storage block", "sandbox": "a sandbox block", "code": "a code block", "policy": "a policy",
	"identity": "an identity", "source": "a source", "mount": "a mount",
}

func alternatives(s *jsonschema.Schema) []string {
	switch {
	case s.Ref != "":
		return []string{blocks[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]}
	case len(s.Enum) > 0:
		return []string{strings.Join(s.Enum, " | ")}
	case len(s.AnyOf) > 0 && s.Type == nil:
		var out []string
		for _, form := range s.AnyOf {
			words := alternatives(form)
			if form.Items != nil && joined(alternatives(form.Items)) == joined(out) {
				words = []string{"a list of such"}
			}
			out = append(out, words...)
		}
		return out
	case s.Then != nil || s.Else != nil:
		var out []string
		for _, form := range []*jsonschema.Schema{s.Then, s.Else} {
			if form != nil {
				out = append(out, alternatives(form)...)
			}
		}
		return out
	case len(s.Type) == 0:
		return nil
	}
	return []string{typeWords(s)}
}

func typeWords(s *jsonschema.Schema) string {
	switch s.Type[0] {
	case "boolean":
		return "true | false"
	case "integer", "number":
		return "number"
	case "array":
		if of := joined(alternatives(s.Items)); of != "" {
			return "list of " + of
		}
		return "list"
	case "object":
		return "mapping"
	}
	return "text"
}
