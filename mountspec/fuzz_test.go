package mountspec

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wsmount/wsmount/integration/assert"
)

// fuzzKind feeds one parser: it never panics, every finding has a place and
// says something printable, and what is accepted prints and parses to itself.
func fuzzKind(f *testing.F, kind string) {
	for _, dir := range []string{"accept", "refuse"} {
		for name, data := range testdata(f, dir) {
			if strings.Contains(name, kind) {
				f.Add(data)
			}
		}
	}
	for _, c := range allRules {
		if c.kind == kind {
			text, _, _ := c.text(f)
			f.Add([]byte(text))
		}
	}
	schema := ownSchema(f, kind)
	f.Fuzz(func(t *testing.T, data []byte) {
		v, findings := parseKind(kind+".md", data, Options{})
		for _, x := range findings {
			assert.True(t, x.Line >= 1 && x.Column >= 1 && x.File == kind+".md" && x.Rule != "" && x.Message != "", "half a finding:", x)
			if r, bad := controlIn(x.String(), ""); bad || !utf8.ValidString(x.String()) || len(x.String()) > 2000 {
				t.Errorf("a finding that cannot be shown (%U): %q", r, x)
			}
		}
		assert.False(t, v == nil && findings.Err() == nil, "refused without a reason", findings)
		if findings.Err() == nil {
			assert.OK(t, schema.Validate(asJSON(t, data)), "the schema refuses what is accepted")
		}
		if m, ok := v.(marshaler); ok {
			checkStable(t, kind+".md", m)
		}
	})
}

func FuzzParseWorkspace(f *testing.F) { fuzzKind(f, "WORKSPACE") }
func FuzzParseStorage(f *testing.F)   { fuzzKind(f, "STORAGE") }
func FuzzParseSecrets(f *testing.F)   { fuzzKind(f, "SECRETS") }
func FuzzParseSandbox(f *testing.F)   { fuzzKind(f, "SANDBOX") }
func FuzzParsePolicy(f *testing.F)    { fuzzKind(f, "POLICY") }
func FuzzParseCode(f *testing.F)      { fuzzKind(f, "CODE") }
func FuzzParseIdentity(f *testing.F)  { fuzzKind(f, "IDENTITY") }

func FuzzExclude(f *testing.F) {
	for _, p := range []string{".runs/", "**/*.log", "a/**/z", `\*`, "!x", "a**", "*"} {
		f.Add(p, "a/b/z.log", true)
	}
	f.Fuzz(func(t *testing.T, p, path string, isDir bool) {
		set, err := CompileExclude([]string{p})
		if err != nil {
			return
		}
		got := set.Match(path, isDir)
		assert.False(t, got && isDir && !set.Match(path+"/below", false), p, "matches the directory", path, "and not what is below")
		assert.False(t, got && !isDir && !set.Match(path, true), p, "matches the file", path, "and not a directory of that name")
		assert.False(t, set.Match("", true), p, "excludes the root")
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{{operator}}: {{summary}}", "{{ files }}", "{{", "}}", "{{x}}"} {
		f.Add(s, "value\n")
	}
	f.Fuzz(func(t *testing.T, s, value string) {
		tmpl, err := ParseTemplate(s)
		if err != nil {
			return
		}
		got := tmpl.Expand(Vars{Operator: value, Summary: value, Workspace: value, Turn: value, Conversation: value,
			Files: []string{value}, Date: time.Unix(0, 0).UTC()})
		_, bad := controlIn(got, "")
		assert.True(t, !bad && got != "" && len(got) <= maxMessage && utf8.ValidString(got), s, "with", value, got)
	})
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"@acme/marketing-ops", "@a/b/c", "@/", "../x", "./x", "@A/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := ParseAddress(s); err == nil && (a.String() != s || strings.Count(s, "/") != 1 || strings.Contains(s, ".")) {
			t.Errorf("%q parses as %+v", s, a)
		}
		r, err := ParseRef(s)
		if err == nil && r.Kind != RefSlug && (strings.HasPrefix(r.Clean(), "/") || r.Kind == RefPath && strings.HasPrefix(r.Clean(), "..") && hasSegment(r.Clean(), "..")) {
			t.Errorf("%q leaves the workspace as a %v: %q", s, r.Kind, r.Clean())
		}
		branch, err := BranchForConversation(s)
		assert.False(t, err == nil && !ValidBranch(branch), s, "gives the branch", branch)
	})
}
