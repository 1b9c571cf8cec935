package host

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/integration/assert"
)

// configSchema is the schema of configurations, as another program understands it.
func configSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := Outline().Document()
	assert.OK(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	assert.OK(t, err)
	c := jsonschema.NewCompiler()
	assert.OK(t, c.AddResource("config", doc))
	s, err := c.Compile("config")
	assert.OK(t, err, string(text))
	return s
}

// What the parser accepts is valid, and a key that it does not know is not.
func TestOutline(t *testing.T) {
	s := configSchema(t)
	for _, c := range []struct {
		text  string
		valid bool
	}{
		{fullConfig, true},
		{"{}", true},
		{`workspaces: { "@acme/app": { name: App, storage: { provider: github, config: { repo: acme/app } }, read_only: true } }`, true},
		{"search_paths: [ /a ]", false},
		{"allow_paths: /a", false},
		{"providers: { github: { basurl: x } }", false},
		{"providers: { github: { clone: half } }", false},
		{"providers: { github: { app: { id: one } } }", false},
		{"secrets: { a: { value: x } }", false},
		{"secrets: { a: { env: [ A ] } }", false},
		{"storages: { \"@a/s\": [ /x ] }", false},
	} {
		var v any
		assert.OK(t, yaml.Unmarshal([]byte(c.text), &v))
		text, err := json.Marshal(v)
		assert.OK(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		assert.OK(t, err)
		err = s.Validate(doc)
		assert.Equal(t, err == nil, c.valid, c.text, err)
		_, findings := parseAs(c.text)
		assert.Equal(t, len(findings) == 0, c.valid, c.text, findings)
	}
}
