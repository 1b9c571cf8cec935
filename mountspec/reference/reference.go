// Package reference says what each key of the host configuration and of the manifests does,
// with an example each. The set of keys, their types and which are needed come from
// the parsers themselves, which describe the documents that they read; only the sentences are
// written in this package, in texts, and the examples, which the parsers accept. A test fails
// where a key has no sentence, a sentence no key, or a key no example.
//
//	page, err := reference.Find("config", nil)
//	for _, s := range page.Sections { for _, k := range s.Keys { fmt.Println(k.Path, k.Text) } }
//
// It leaves the presentation of a page to its callers.
package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/facts"
	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
)

// A Page is the reference of a kind of files. In its texts an empty line parts paragraphs,
// lines that begin with two blanks are examples, and `back quotes` mean text to type.
type Page struct {
	Name     string // config or manifest
	Title    string // its subject, in a few words
	Intro    string
	Sections []Section
	Examples []Example // whole files, all of which are valid
}

// A Section describes a file, or a block that several files have.
type Section struct {
	Title string
	Intro string
	Keys  []Key
}

// A Key is one key of a file.
type Key struct {
	Path     string // providers.github.app.id; <name> stands for a chosen name, [] for each of a list
	Type     string // of the value: text, true or false, a | b, list of text ...; empty: anything
	Required bool   // in the mapping that it stands in
	Default  string // empty: none, or the text says it
	Text     string
	Example  string // on one line, from the top of the file; empty: it has keys of its own, which have
}

// An Example is a whole file.
type Example struct{ Name, Text string }

// Names lists the pages.
func Names() []string { return []string{"config", "manifest"} }

// Find is the page of a name; providers are those of storage that this program has.
func Find(name string, providers []string) (Page, error) {
	found, err := collect(name, providers)
	if err != nil {
		return Page{}, err
	}
	return page(name, found)
}

// Schema is the JSON Schema of the host configuration, config, or of a manifest, for editors,
// which show what each key does.
func Schema(name string, providers []string) ([]byte, error) {
	root, of := host.Outline(), "config"
	if !slices.Contains(Schemas(), name) {
		return nil, fmt.Errorf("no schema of %.60q: there are %s", name, strings.Join(Schemas(), ", "))
	}
	if name != "config" {
		var err error
		if root, err = mountspec.Outline(name, providers...); err != nil {
			return nil, err
		}
		of = "manifest"
	}
	text, err := read(of)
	if err != nil {
		return nil, err
	}
	for block, s := range root.Definitions {
		text.describe(block, s)
	}
	text.describe(name, root)
	return root.Document()
}

// Schemas lists those that Schema knows.
func Schemas() []string { return append(mountspec.Schemas(), "config") }

// describe writes the sentences about the keys of a section into its schema.
func (t *text) describe(section string, s *jsonschema.Schema) {
	said := map[string]string{}
	for _, of := range t.sections {
		for _, e := range of.entries {
			said[of.name+" "+plain(e.path)] = e.text
		}
	}
	visit(section, "", s, func(of, at string, key *jsonschema.Schema, _ bool) {
		if key.Ref == "" { // in this draft nothing may stand beside it
			key.Description = said[of+" "+at]
		}
	})
}

// collect asks the parsers of a page which keys there are.
func collect(name string, providers []string) (keys, error) {
	found := keys{}
	switch name {
	case "config":
		found.walk("config", "", host.Outline())
		found.walk("facts", "", facts.Outline())
	case "manifest":
		for _, kind := range mountspec.Schemas() {
			s, err := mountspec.Outline(kind, providers...)
			if err != nil {
				return nil, err
			}
			for block, of := range s.Definitions {
				found.walk(block, "", of)
			}
			found.walk(kind, "", s)
		}
	default:
		return nil, fmt.Errorf("there is no page %q", name)
	}
	return found, nil
}

// page joins the keys that were found with the texts about them.
func page(name string, found keys) (Page, error) {
	text, err := read(name)
	if err != nil {
		return Page{}, err
	}
	p := Page{Name: name, Title: text.title, Intro: text.intro}
	examples, err := documents(name)
	if err != nil {
		return Page{}, err
	}
	for _, t := range text.sections {
		s := Section{Title: t.title, Intro: t.intro}
		for _, e := range t.entries {
			if f := found[t.name][plain(e.path)]; f != nil {
				s.Keys = append(s.Keys, Key{Path: e.path, Type: f.kind(), Required: f.required, Default: e.defaults, Text: e.text,
					Example: example(examples, t, e.path, f)})
			}
		}
		if t.name == "" || found[t.name] != nil {
			p.Sections = append(p.Sections, s)
		}
	}
	for _, d := range examples {
		p.Examples = append(p.Examples, Example{d.name, d.text})
	}
	return p, nil
}
