// Package openapi holds what is asked of an API, and what it answers, to the API's
// description in OpenAPI 3.0.
//
// It knows no API. Beyond what OpenAPI asks, nothing may be sent that the
// description does not name, neither a parameter nor a property: a name that is
// misspelled would be one that is left out, and most may be.
//
//	d, err := openapi.Load("bin/github-api.json", "basic-error")
//	call, err := d.Request(r, body) // whose path is without the API's own
//	err = call.Answer(status, header, answer)
//
// An error names the operation, each place that is wrong, and what was expected
// there.
package openapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// A Description is that of an API. It may be used by many at once.
type Description struct{ router routers.Router }

// Load reads a description. failure is the schema of a failure whose status an
// operation does not name.
func Load(path, failure string) (*Description, error) {
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	schema := doc.Components.Schemas[failure]
	if schema == nil {
		return nil, fmt.Errorf("%s: there is no schema %s", path, failure)
	}
	doc.Servers = nil // it is served elsewhere
	closed := closer{}
	for _, item := range doc.Paths.Map() {
		for _, operation := range item.Operations() {
			operation.Responses.Set("default", &openapi3.ResponseRef{Value: openapi3.NewResponse().WithDescription(failure).WithJSONSchemaRef(schema)})
			closed.operation(operation)
		}
	}
	router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Description{router}, nil
}

// A Call is a request of one operation.
type Call struct {
	ID   string                                 // of the operation
	in   *openapi3filter.RequestValidationInput // nil: nothing is known of it
	path map[string]string
}

// Undescribed is a call of an operation that no description is there for, with the
// parameters in its path: whatever it is answered fits.
func Undescribed(id string, path map[string]string) *Call { return &Call{ID: id, path: path} }

// Request finds the operation that a request is of, and checks the request, whose
// body is body.
func (d *Description) Request(r *http.Request, body []byte) (*Call, error) {
	route, parameters, err := d.router.FindRoute(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	c := &Call{ID: route.Operation.OperationID, path: parameters,
		in: &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route, Options: options()}}
	if name := unnamed(route, r); name != "" {
		return c, fmt.Errorf("%s: parameter %q in query: there is none of that name", c.ID, name)
	}
	if err := openapi3filter.ValidateRequest(r.Context(), c.in); err != nil {
		return c, fmt.Errorf("%s: %w", c.ID, err)
	}
	return c, nil
}

// unnamed is a parameter of a request that its operation does not have.
func unnamed(route *routers.Route, r *http.Request) string {
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if route.Operation.Parameters.GetByInAndName("query", name) == nil && route.PathItem.Parameters.GetByInAndName("query", name) == nil {
			return name
		}
	}
	return ""
}

// InPath is a parameter in the path of the call.
func (c *Call) InPath(name string) string { return c.path[name] }

// Answer checks what the call is answered.
func (c *Call) Answer(status int, header http.Header, body []byte) error {
	if c.in == nil {
		return nil
	}
	named := c.in.Route.Operation.Responses.Status(status) != nil
	if !named && status < http.StatusBadRequest {
		return fmt.Errorf("%s: answer %d: the operation has none of that status", c.ID, status)
	}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{RequestValidationInput: c.in,
		Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), Options: options()})
	if err != nil {
		return fmt.Errorf("%s: answer %d: %w", c.ID, status, err)
	}
	return nil
}

// Example is the description's own example of what a call is answered, which is
// not to be changed; without a description it is an empty object.
func (c *Call) Example(status int) (any, error) {
	if c.in == nil {
		return map[string]any{}, nil
	}
	if response := c.in.Route.Operation.Responses.Status(status); response != nil {
		for _, example := range response.Value.Content.Get("application/json").Examples {
			return example.Value.Value, nil
		}
	}
	return nil, fmt.Errorf("%s: answer %d: the description has no example", c.ID, status)
}

func options() *openapi3filter.Options {
	return &openapi3filter.Options{MultiError: true, RejectWhenRequestBodyNotSpecified: true, SkipSettingDefaults: true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation(), openapi3.DisableSchemaErrorDetails(),
			openapi3.WithStringFormatValidator("uri", openapi3.NewCallbackValidator(absolute))}}
}
