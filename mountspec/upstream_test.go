//go:build upstream

package mountspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/integration/assert"
)

// These tests run by hand against a copy of the upstream repository's schemas
// and examples, which are not part of this one:
//
//	WSMOUNT_UPSTREAM=dir go test -tags upstream -run Upstream -v ./mountspec
//
// where dir holds schemas/*.schema.json and examples/*.
func upstream(t *testing.T) string {
	dir := os.Getenv("WSMOUNT_UPSTREAM")
	if dir == "" {
		t.Fatal("WSMOUNT_UPSTREAM names no directory")
	}
	return dir
}

// Every real WORKSPACE.md is accepted, and every real manifest of another kind is refused as one
// for its schema.
func TestUpstreamExamples(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(upstream(t), "examples", "*.md"))
	assert.Must(t, err == nil && len(paths) != 0, "no examples", err)
	for _, p := range paths {
		data := assert.Of(os.ReadFile(p)).OK(t)
		w, findings := ParseWorkspace(Source{p, data}, Options{})
		if strings.HasSuffix(p, "WORKSPACE.md") {
			if w == nil || findings.Err() != nil {
				t.Errorf("%s is refused:\n%v", p, findings)
				continue
			}
			checkStable(t, p, w)
		} else if w != nil || !strings.Contains(findings.Error(), "schema: must be workspace/v1") {
			t.Errorf("%s is taken for a workspace, or not refused for its schema:\n%v", p, findings)
		}
	}
	t.Logf("%d examples", len(paths))
}

var schemaOf = map[string]string{
	"WORKSPACE": "https://agentproto.sh/docs/aip-34/WORKSPACE.schema.json",
	"STORAGE":   "https://agentproto.sh/schemas/aip-35/STORAGE.schema.json",
	"SANDBOX":   "https://agentproto.sh/schemas/aip-36/SANDBOX.schema.json",
	"SECRETS":   "https://agentproto.sh/schemas/aip-19/SECRETS.schema.json",
	"POLICY":    "https://agentproto.sh/schemas/aip-38/POLICY.schema.json",
	"CODE":      "https://agentproto.sh/schemas/aip-26/CODE.schema.json#/$defs/codeWorkspaceManifest",
}

func compileSchemas(t *testing.T) map[string]*jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	paths, _ := filepath.Glob(filepath.Join(upstream(t), "schemas", "*.schema.json"))
	for _, p := range paths {
		doc := assert.Of(jsonschema.UnmarshalJSON(bytes.NewReader(assert.Of(os.ReadFile(p)).OK(t)))).OK(t)
		assert.OK(t, c.AddResource(doc.(map[string]any)["$id"].(string), doc))
	}
	out := map[string]*jsonschema.Schema{}
	for name, url := range schemaOf {
		schema := assert.Of(c.Compile(url)).OK(t)
		out[name] = schema
	}
	return out
}

// A difference is a reason for which we refuse what the schema accepts. rule
// and path are of the finding.
type difference struct {
	name       string
	rule, path *regexp.Regexp
	reason     string
}

func differ(name, rule, path, reason string) difference {
	return difference{name, regexp.MustCompile("^(" + rule + ")$"), regexp.MustCompile(path), reason}
}

// stricter lists all that we refuse and the schemas do not.
var stricter = []difference{
	differ("credentials", "plaintext-credential", "", "AIP-35, conformance rule 2, is prose"),
	differ("owner", "owner-mismatch", "", "AIP-34, conformance rule 3, is prose"),
	differ("sync mode", "sync-mode", "", "AIP-35, conformance rule 3, is prose"),
	differ("conflict policy", "conflict-policy", "", "a policy that the provider cannot carry out must not be ignored"),
	differ("provider config", ".*", `(^|\.)config(\.|\[|$)`, "AIP-35, principle 3, types config per provider; the schema has no sub-schemas"),
	differ("references", "ref-shape", "", "AIP-35, Reference resolution, has three forms; AIP-27 refuses absolute and climbing paths"),
	differ("identity", "identity-form|identity-ref|email|person-name", "", "AIP-23: exactly one form, an RFC 5322 address; git cannot carry others"),
	differ("empty role", "empty-value", `\.role$`, "an empty role names none"),
	differ("templates", "message-template", "", "an unknown token would end up in every commit message"),
	differ("events", "event-name", "", "AIP-37: names are kebab-case words"),
	differ("exclude", "exclude-pattern", "", "a pattern that is read as plain text would let out what it should keep in"),
	differ("environment names", "env-name", "", "AIP-19: a name, never a value"),
	differ("mount points", "mount-point", "", "AIP-36: hosts normalise, no .."),
	differ("control characters", "control-character", "", "they act on the terminal that shows them"),
	differ("our metadata", "unknown-key|wrong-type|empty-value", `metadata\.wsmount`, "metadata.wsmount is ours and closed"),
	differ("our mounts", ".*", `^mounts$|metadata\.wsmount\.mounts`, "metadata.wsmount is ours and closed"),
	differ("other spellings of read_only", "unknown-key|wrong-type", `(^|\.)defaults\.`, "a read_only that is not seen lets writes through"),
	differ("secret slugs", "secret-slug|duplicate-slug", "", "AIP-19's prose: no double dash, unique in the inventory"),
	differ("inline code", ".*", `(^|\.)code\.inline(\.|$|\[)`, "the WORKSPACE schema takes any object for code; AIP-26 does not"),
	differ("code sources", "unknown-key", `^code\.sources\[`, "AIP-26: the discriminator is the single populated key"),
	differ("code paths", "code-path", "", "AIP-26, Path semantics, is prose"),
	differ("metadata bindings", "env-name|wrong-type|empty-value", `metadata\.bindings`, "AIP-19: bindings.env lists names"),
	differ("large numbers", "range", "", "a number of seconds must fit a duration"),
	differ("long ids", "address", "", "a segment of an address is a file name: at most 128 bytes"),
}

// looser lists the warnings that say why we accept what a schema does not.
var looser = map[string]string{
	"sketched-mounts":   "AIP-34, Open questions, sketches the key that its schema does not have",
	"secret-slug-depth": "AIP-35's own example, org/acme/s3-rw, fails AIP-19's pattern",
	"exposure-kind":     "the schema's own description tells hosts to ignore kinds that they do not know",
	"code-form":         "the lean form of AIP-26 is not in the CODE schema",
}

// TestUpstreamVerdicts compares our verdict with the schemas' on every
// manifest of testdata and examples and on what mutation makes of them.
func TestUpstreamVerdicts(t *testing.T) {
	schemas := compileSchemas(t)
	tally := map[string]int{}
	for name, data := range upstreamBases(t) {
		k := kindOf(name)
		schema := schemas[k]
		if schema == nil {
			continue
		}
		base, ok := generic(data)
		if !ok {
			continue
		}
		if k == "CODE" && base["kind"] == nil {
			continue // the schema knows the rich form only
		}
		seen := map[string]bool{}
		mutate(base, func(doc any) {
			text, err := json.Marshal(doc)
			if err != nil || seen[string(text)] {
				return
			}
			seen[string(text)] = true
			tally["manifests"]++
			compare(t, k, schema, text, tally)
		})
	}
	for _, key := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%6d %s", tally[key], key)
	}
	for _, d := range stricter {
		assert.False(t, tally["stricter: "+d.name] == 0, "the difference", d.name, "is listed and never occurs")
	}
	if tally["manifests"] < 3000 || tally["both accept"] < 500 || tally["both refuse"] < 1000 {
		t.Error("the corpus is too small or too one-sided to say anything")
	}
}

func compare(t *testing.T, k string, schema *jsonschema.Schema, text []byte, tally map[string]int) {
	t.Helper()
	_, findings := parseKind(k+".md", []byte("---\n"+string(text)+"\n---\n"), Options{})
	errs := slices.DeleteFunc(findings.Filter(Error), func(f Finding) bool { return f.Rule == "provider-unknown" })
	theirs := validate(schema, text)
	switch {
	case len(errs) == 0 && theirs == nil:
		tally["both accept"]++
	case len(errs) != 0 && theirs != nil:
		tally["both refuse"]++
	case len(errs) != 0:
		for _, f := range errs {
			i := slices.IndexFunc(stricter, func(d difference) bool { return d.rule.MatchString(f.Rule) && d.path.MatchString(f.Path) })
			if i < 0 {
				t.Errorf("the schema accepts and we refuse: %v\n%s", f, text)
				return
			}
			tally["stricter: "+stricter[i].name]++
		}
		tally["we refuse, the schema accepts"]++
	default:
		why := looserReason(schema, findings, text)
		if why == "" {
			t.Errorf("we accept and the schema refuses: %v\n%s", theirs, text)
			return
		}
		tally["looser: "+why]++
		tally["we accept, the schema refuses"]++
	}
}

func looserReason(schema *jsonschema.Schema, findings Findings, text []byte) string {
	for _, f := range findings {
		if _, listed := looser[f.Rule]; listed {
			return f.Rule
		}
	}
	// A plain number where text is wanted is the author's text to us: a
	// schema sees it only after a generic parser turned it into a number.
	doc := decodeJSON(text)
	for range 8 {
		err := schema.Validate(doc)
		if err == nil {
			return "a number is text"
		}
		if !quoteNumbers(err.(*jsonschema.ValidationError), doc) {
			return ""
		}
	}
	return ""
}

// quoteNumbers turns the numbers that the error complains about into text.
func quoteNumbers(err *jsonschema.ValidationError, doc any) bool {
	changed := false
	if typ, ok := err.ErrorKind.(*kind.Type); ok && slices.Contains(typ.Want, "string") && (typ.Got == "number" || typ.Got == "integer") {
		changed = edit(doc, err.InstanceLocation, func(v any) any { return fmt.Sprint(v) })
	}
	for _, cause := range err.Causes {
		changed = quoteNumbers(cause, doc) || changed
	}
	return changed
}

func edit(doc any, path []string, change func(any) any) bool {
	for i, step := range path {
		last := i == len(path)-1
		switch node := doc.(type) {
		case map[string]any:
			if last {
				_, was := node[step].(string)
				node[step] = change(node[step])
				return !was
			}
			doc = node[step]
		case []any:
			n, _ := strconv.Atoi(step)
			if last {
				_, was := node[n].(string)
				node[n] = change(node[n])
				return !was
			}
			doc = node[n]
		}
	}
	return false
}

func validate(schema *jsonschema.Schema, text []byte) error { return schema.Validate(decodeJSON(text)) }

func decodeJSON(text []byte) any {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	return doc
}

func upstreamBases(t *testing.T) map[string][]byte {
	bases := testdata(t, "accept")
	maps.Copy(bases, testdata(t, "refuse"))
	paths, _ := filepath.Glob(filepath.Join(upstream(t), "examples", "*WORKSPACE.md"))
	for _, p := range paths {
		data := assert.Of(os.ReadFile(p)).OK(t)
		bases[p] = data
	}
	return bases
}

// generic reads a frontmatter as JSON would have it.
func generic(data []byte) (map[string]any, bool) {
	d := newDecoder("x", Options{})
	front, _, ok := d.cut(data)
	if !ok {
		return nil, false
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		return nil, false
	}
	m, ok := value{d: d, n: doc.Content[0]}.plain().(map[string]any)
	return m, ok
}

// mutate visits the document, and the document with one change, for every
// change at every place. visit must not keep it.
func mutate(doc map[string]any, visit func(any)) {
	visit(doc)
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(node)) {
				old := node[key]
				for _, other := range variants(old) {
					node[key] = other
					visit(doc)
				}
				delete(node, key)
				visit(doc)
				for _, name := range []string{strings.ToUpper(key), key + "x", "x_" + key} {
					node[name] = old
					visit(doc)
					delete(node, name)
				}
				node[key] = old
				walk(old)
			}
			node["unheard_of"] = "x"
			visit(doc)
			delete(node, "unheard_of")
		case []any:
			for i, old := range node {
				for _, other := range variants(old) {
					node[i] = other
					visit(doc)
				}
				node[i] = old
				walk(old)
			}
		}
	}
	walk(doc)
}

// variants are other values for a place.
func variants(old any) []any {
	out := []any{nil, true, "", "x", "X y", "rebase", "watch", "a\u0007b", "@a/" + strings.Repeat("b", 200), 0, -1, 7, 1.5, 1 << 50, []any{}, []any{"x"}, map[string]any{}, map[string]any{"ref": "./x"}, map[string]any{"inline": map[string]any{}}}
	switch old := old.(type) {
	case string:
		out = append(out, old+"-", "-"+old, strings.ToUpper(old), old+"/x", old+" ", strings.Repeat(old+"a", 90), "@a/"+old, "../"+old, "/"+old)
	case []any:
		out = append(out, append(slices.Clone(old), old...), append(slices.Clone(old), 1))
	case map[string]any:
		out = append(out, []any{old, old})
	}
	return out
}
