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
	text := assert.Of(Outline().Document()).OK(t)
	doc := assert.Of(jsonschema.UnmarshalJSON(bytes.NewReader(text))).OK(t)
	c := jsonschema.NewCompiler()
	assert.OK(t, c.AddResource("config", doc))
	return assert.Of(c.Compile("config")).OK(t, string(text))
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
		err := s.Validate(assert.Of(jsonschema.UnmarshalJSON(bytes.NewReader(assert.Of(json.Marshal(v)).OK(t)))).OK(t))
		assert.Equal(t, err == nil, c.valid, c.text, err)
		_, findings := parseAs(c.text)
		assert.Equal(t, len(findings) == 0, c.valid, c.text, findings)
	}
}
