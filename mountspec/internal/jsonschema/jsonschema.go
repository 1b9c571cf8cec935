// Package jsonschema has the part of JSON Schema (draft 7, which editors know best) that
// the manifests of package mountspec and the host configuration need. It only writes schemas.
//
//	s := jsonschema.Schema{Type: jsonschema.Types{"string"}, Enum: []string{"a", "b"}}
package jsonschema

import (
	"bytes"
	"encoding/json"
)

// Draft is the dialect that a whole schema names in its Dialect.
const Draft = "http://json-schema.org/draft-07/schema#"

// A Schema says which values are valid. The zero value takes every one.
type Schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"` // nothing else counts beside it
	Definitions map[string]*Schema `json:"definitions,omitempty"`

	Type      Types    `json:"type,omitempty"`
	Const     string   `json:"const,omitempty"`
	Enum      []string `json:"enum,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	MinLength int      `json:"minLength,omitempty"`
	MaxLength int      `json:"maxLength,omitempty"`
	Minimum   *int64   `json:"minimum,omitempty"`
	Maximum   *int64   `json:"maximum,omitempty"`

	Items    *Schema `json:"items,omitempty"`
	MinItems int     `json:"minItems,omitempty"`

	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Closed     bool               `json:"-"` // only Properties: "additionalProperties": false
	Values     *Schema            `json:"-"` // of keys that are free: "additionalProperties"

	AllOf []*Schema `json:"allOf,omitempty"`
	AnyOf []*Schema `json:"anyOf,omitempty"`
	OneOf []*Schema `json:"oneOf,omitempty"`
	Not   *Schema   `json:"not,omitempty"`
	If    *Schema   `json:"if,omitempty"`
	Then  *Schema   `json:"then,omitempty"`
	Else  *Schema   `json:"else,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s *Schema) MarshalJSON() ([]byte, error) {
	type plain Schema
	out := struct {
		*plain
		Additional any `json:"additionalProperties,omitempty"`
	}{plain: (*plain)(s)}
	if s.Values != nil {
		out.Additional = s.Values
	} else if s.Closed {
		out.Additional = false
	}
	return json.Marshal(out)
}

// Document is the schema as a file of its own.
func (s *Schema) Document() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(s)
	return b.Bytes(), err
}

// Types are the types that a value may have.
type Types []string

// MarshalJSON implements json.Marshaler: one type stands without a list.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Property is the schema of a property of an object, which may be made.
func (s *Schema) Property(key string) *Schema {
	if s.Properties == nil {
		s.Properties = map[string]*Schema{}
	}
	if s.Properties[key] == nil {
		s.Properties[key] = &Schema{}
	}
	return s.Properties[key]
}

// Has is the schema of objects that have all of some keys.
func Has(keys ...string) *Schema { return &Schema{Required: keys} }
