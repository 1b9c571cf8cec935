package mountspec

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/wsmount/wsmount/integration/assert"
)

// printed is the schema of a kind of manifests as a document.
func printed(t testing.TB, kind string, providers ...string) []byte {
	t.Helper()
	return assert.Of(assert.Of(Outline(kind, providers...)).OK(t).Document()).OK(t)
}

// ownSchema is the schema of a kind of manifests, as another program understands it.
func ownSchema(t testing.TB, kind string, providers ...string) *jsonschema.Schema {
	t.Helper()
	text := printed(t, strings.ToLower(kind), providers...)
	doc := assert.Of(jsonschema.UnmarshalJSON(bytes.NewReader(text))).OK(t)
	c := jsonschema.NewCompiler()
	assert.OK(t, c.AddResource(kind, doc))
	return assert.Of(c.Compile(kind)).OK(t, string(text))
}

// asJSON is the frontmatter of a manifest as an editor has it; nil: it cannot be read.
func asJSON(t testing.TB, data []byte) any {
	t.Helper()
	d := newDecoder("x", Options{})
	root := d.parseFrontmatter(Source{"x", data})
	if root == nil {
		return nil
	}
	text := assert.Of(json.Marshal(value{d: d, n: root}.plain())).OK(t)
	return assert.Of(jsonschema.UnmarshalJSON(bytes.NewReader(text))).OK(t)
}

// What the parser accepts is valid.
func TestSchemaOfWhatIsAccepted(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	for kind := range validManifest {
		schemas[kind] = ownSchema(t, kind)
	}
	check := func(name, kind string, data []byte) {
		t.Helper()
		if _, findings := parseKind(kind+".md", data, Options{}); findings.Err() != nil {
			return
		}
		assert.OK(t, schemas[kind].Validate(asJSON(t, data)), name, string(data))
	}
	for name, data := range testdata(t, "accept") {
		check(name, kindOf(name), data)
	}
	for _, c := range allRules {
		text, _, _ := c.text(t)
		check(c.name, c.kind, []byte(text))
	}
}

// onlyTheParser are rules on what no schema knows: the syntax of YAML, what a text means, what
// depends on another value.
var onlyTheParser = []string{
	"yaml-merge", "yaml-tag", "yaml-alias", "duplicate-key", "key-not-text", "control-character", "ref-shape", "date-time", "mount-point", "mount-duplicate",
	"email", "person-name", "identity-ref", "bucket-name", "prefix", "endpoint", "repository", "branch-name", "local-path", "message-template", "event-name",
	"exclude-pattern", "plaintext-credential", "secret-slug", "duplicate-slug", "access-cap", "code-path", "env-name",
}

// lenient are the cases of other rules that the schema takes, with the reason.
var lenient = map[string]string{
	"github without owner":     "it may stand in repo",
	"defaults by another name": "defaults are open",
	"policy defaults":          "they are open",
	"policy read-only":         "they are open",
	"policy readOnly":          "they are open",
	"exposure key":             "exposures are open, by their kind",
	"exposure mode":            "exposures are open, by their kind",
}

// What the parser refuses for its shape is not valid either.
func TestSchemaOfWhatIsRefused(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	for kind := range validManifest {
		schemas[kind] = ownSchema(t, kind)
	}
	taken := map[string]bool{}
	for _, c := range allRules {
		text, _, _ := c.text(t)
		_, findings := parseKind(c.kind+".md", []byte(text), Options{})
		doc := asJSON(t, []byte(text))
		if findings.Err() == nil || doc == nil || schemas[c.kind].Validate(doc) != nil {
			continue
		}
		rule := findings.Filter(Error)[0].Rule
		taken[rule], taken[c.name] = true, true
		assert.False(t, lenient[c.name] == "" && !slices.Contains(onlyTheParser, rule), rule, c.name, "the schema takes it")
	}
	for _, name := range slices.Concat(onlyTheParser, slices.Collect(maps.Keys(lenient))) {
		assert.True(t, taken[name], name, "is known to the schema")
	}
}

// The providers are those of the host, and each has its own config.
func TestSchemaOfProviders(t *testing.T) {
	s := ownSchema(t, "STORAGE", "memory", ProviderLocalFS)
	for text, valid := range map[string]bool{
		`{"provider":"local-fs","config":{"mount_path":"/x"}}`:                                   true,
		`{"provider":"local-fs","config":{}}`:                                                    false,
		`{"provider":"local-fs","config":{"bucket":"x"}}`:                                        false,
		`{"provider":"local-fs","config":{"path":"/x"},"sync":{"mode":"pull-push"}}`:             false,
		`{"provider":"local-fs","config":{"path":"/x"},"sync":{"conflict":{"policy":"rebase"}}}`: false,
		`{"provider":"memory","config":{"whatever":1}}`:                                          true,
		`{"provider":"memory"}`:                                                                  false,
		`{"provider":"cloud-bucket","config":{"bucket":"files"}}`:                                false,
	} {
		doc := assert.Of(jsonschema.UnmarshalJSON(strings.NewReader(text))).OK(t)
		assert.Equal(t, s.Validate(doc) == nil, valid, text)
	}
	_, err := Outline("lifecycle")
	assert.True(t, err != nil && strings.Contains(err.Error(), "workspace"), err)
	again := printed(t, "workspace")
	for range 8 { // maps have no order
		text := printed(t, "workspace")
		assert.True(t, bytes.Equal(text, again), "two schemas of one")
	}
}
