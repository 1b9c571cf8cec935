package openapi

import (
	"fmt"
	"net/url"

	"github.com/getkin/kin-openapi/openapi3"
)

// A closer has schemas take no property that they do not name, where they leave
// it open. It knows what it has been at: schemas may contain themselves.
type closer map[*openapi3.Schema]bool

func (c closer) operation(o *openapi3.Operation) {
	if o.RequestBody != nil {
		c.content(o.RequestBody.Value.Content)
	}
	for _, response := range o.Responses.Map() {
		c.content(response.Value.Content)
	}
}

func (c closer) content(content openapi3.Content) {
	for _, media := range content {
		c.schema(media.Schema)
	}
}

func (c closer) schema(ref *openapi3.SchemaRef) {
	if ref == nil || c[ref.Value] {
		return
	}
	s := ref.Value
	c[s] = true
	for _, property := range s.Properties {
		c.schema(property)
	}
	c.schema(s.Items)
	c.schema(s.AdditionalProperties.Schema)
	for _, one := range append(append(openapi3.SchemaRefs{}, s.OneOf...), s.AnyOf...) {
		c.schema(one)
	}
	// The parts of an allOf know one another's properties no more than their own.
	composed := len(s.AllOf)+len(s.OneOf)+len(s.AnyOf) > 0
	if open := s.AdditionalProperties; len(s.Properties) > 0 && open.Has == nil && open.Schema == nil && !composed {
		s.AdditionalProperties = openapi3.AdditionalProperties{Has: new(bool)}
	}
}

// absolute is the format uri, which is not among those that are built in.
func absolute(s string) error {
	if u, err := url.Parse(s); err != nil || !u.IsAbs() {
		return fmt.Errorf("%q has no scheme", s)
	}
	return nil
}
