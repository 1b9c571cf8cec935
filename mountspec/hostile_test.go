package mountspec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// TestHostileInput checks that what is no frontmatter, or no plain YAML, gives
// one clear finding on the right line.
func TestHostileInput(t *testing.T) {
	nest := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	for _, c := range []struct {
		name, text string
		line       int
		rule       string
	}{
		{"empty file", "", 1, "frontmatter-missing"},
		{"text only", "# Title\n", 1, "frontmatter-missing"},
		{"no opening line", validWorkspace + "---\n", 1, "frontmatter-missing"},
		{"blank line first", "\n---\n" + validWorkspace + "---\n", 1, "frontmatter-missing"},
		{"space before the opening", " ---\n" + validWorkspace + "---\n", 1, "frontmatter-missing"},
		{"opening line with text", "--- x\n" + validWorkspace + "---\n", 1, "frontmatter-missing"},
		{"nothing but an opening", "---", 1, "frontmatter-missing"},
		{"no closing line", "---\n" + validWorkspace, 1, "frontmatter-unclosed"},
		{"indented closing line", "---\n" + validWorkspace + " ---\n", 1, "frontmatter-unclosed"},
		{"four dashes", "---\n" + validWorkspace + "----\n", 1, "frontmatter-unclosed"},
		{"empty frontmatter", "---\n---\n", 1, "frontmatter-empty"},
		{"comment only", "---\n# x\n---\n", 1, "frontmatter-empty"},
		{"second document behind", "---\n" + validWorkspace + "---\n\n---\nid: \"@x/y\"\n---\n", 10, "second-document"},
		{"second document inside", "---\n" + validWorkspace + "...\nid: \"@x/y\"\n---\n", 8, "second-document"},
		{"second document on a marker line", "---\n" + validWorkspace + "--- { id: x }\n---\n", 8, "second-document"},
		{"UTF-16", "\xff\xfe-\x00-\x00-\x00\n\x00", 1, "encoding"},
		{"invalid UTF-8", "---\nschema: workspace/v1\nname: \xff\n---\n", 3, "encoding"},
		{"NUL", "---\nschema: workspace/v1\nname: \x00\n---\n", 3, "control-character"},
		{"escape byte", "---\nname: \x1b[31m\n---\n", 2, "control-character"},
		{"lone carriage return", "---\nname: a\rid: b\n---\n", 2, "control-character"},
		{"next line character", "---\nname: a\u0085id: b\n---\n", 2, "control-character"},
		{"line separator", "---\nname: a\u2028id: b\n---\n", 2, "control-character"},
		{"tab indentation", "---\nowner:\n\ttype: org\n---\n", 3, "tab-indentation"},
		{"bad YAML", "---\nname: a\nowner: {\n---\n", 3, "yaml-syntax"},
		{"bad YAML in the middle", "---\nname: a\n  id: b: c\ntags: []\n---\n", 3, "yaml-syntax"},
		{"a list", "---\n- a\n- b\n---\n", 2, "wrong-type"},
		{"a text", "---\nhello\n---\n", 2, "wrong-type"},
		{"deep list", "---\nmetadata: { x: " + nest("[", "]", 80) + " }\n" + validWorkspace + "---\n", 2, "too-deep"},
		{"deep mapping", "---\nmetadata: " + nest("{a: ", "}", 80) + "\n" + validWorkspace + "---\n", 2, "too-deep"},
		{"very deep list", "---\nmetadata: " + nest("[", "]", 50_000) + "\n---\n", 2, "yaml-syntax"},
		{"too many parts", "---\nmetadata: {x: [" + strings.Repeat("1,", maxNodes) + "1]}\n---\n", 1, "frontmatter-too-large"},
		{"too long", "---\nname: " + strings.Repeat("x", MaxFrontmatter) + "\n---\n", 1, "frontmatter-too-large"},
		{"endless", "---\n" + strings.Repeat("a: b\n", MaxFrontmatter/4), 1, "frontmatter-too-large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, findings := ParseWorkspace(Source{"W.md", []byte(c.text)}, Options{})
			assert.Must(t, w == nil && len(findings) != 0, "accepted", w)
			got := strings.Join(places(findings), "\n")
			want := fmt.Sprintf("%d %s", c.line, c.rule)
			assert.True(t, strings.Contains(got, want) && (len(findings) <= 1 || c.rule == "second-document"), "got", got, "want", want, findings)
		})
	}
}

func TestFriendlyInput(t *testing.T) {
	crlf := strings.ReplaceAll("---\n"+validWorkspace+"---\n", "\n", "\r\n")
	for _, c := range []struct{ name, text string }{
		{"BOM", "\ufeff---\n" + validWorkspace + "---\n"},
		{"CRLF", crlf},
		{"BOM and CRLF", "\ufeff" + crlf},
		{"spaces behind the dashes", "--- \t\n" + validWorkspace + "---  \n"},
		{"no line end at the end", "---\n" + validWorkspace + "---"},
		{"comments", "---\n# x\n" + validWorkspace + "# y\n---\n"},
		{"a rule in the text", "---\n" + validWorkspace + "---\n\n---\n\nText: more\n"},
		{"two rules and a line like a key", "---\n" + validWorkspace + "---\n---\n\nkey: x\n---\n"},
		{"a rule and lines like keys", "---\n" + validWorkspace + "---\n---\nkey: x\n"},
		{"a rule right behind", "---\n" + validWorkspace + "---\n---\n# Title\nkey: x\n"},
		{"bytes in the text", "---\n" + validWorkspace + "---\n\x00\xff\r"},
		{"dashes in a block", "---\n" + validWorkspace + "description: |\n  ---\n  x\n---\n"},
	} {
		w, findings := ParseWorkspace(Source{"W.md", []byte(c.text)}, Options{})
		assert.True(t, w != nil && len(findings) == 0 && w.ID.String() == "@a/b", c.name, w, findings)
	}
}

// TestAliasBomb checks that aliases are refused where they stand and never followed.
func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\nmetadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9))
	}
	b.WriteString(validWorkspace + "---\n")
	w, findings := ParseWorkspace(Source{"W.md", []byte(b.String())}, Options{})
	assert.True(t, w == nil && findings.Has("yaml-alias") && findings[0].Line == 3 && findings[0].Rule == "yaml-alias", "got", findings)
	assert.True(t, len(findings) == maxFindings+1 && findings.Has("too-many-findings"), "got", len(findings), "findings, want", maxFindings, "and a last word")
}

// TestAllFindingsAtOnce checks that one mistake hides no other.
func TestAllFindingsAtOnce(t *testing.T) {
	text := "---\nschema: x\nid: y\nversion: z\nname: \"\"\nowner: { type: q, id: o, slug: S, z: 1 }\nstorage: { inline: { provider: github, config: { repo: 1/2/3, brnch: x }, sync: { mode: q } } }\nextra: 1\n---\n"
	_, findings := ParseWorkspace(Source{"W.md", []byte(text)}, Options{})
	want := []string{"2 not-allowed schema", "3 address id", "4 version version", "5 empty-value name",
		"6 not-allowed owner.type", "6 owner-slug owner.slug", "6 unknown-key owner.z",
		"7 not-allowed storage.inline.sync.mode", "7 repository storage.inline.config.repo",
		"7 unknown-key storage.inline.config.brnch", "8 unknown-key extra"}
	assert.Equal(t, strings.Join(places(findings), "\n"), strings.Join(want, "\n"))
	assert.Equal(t, strings.Count(findings.Err().Error(), "\n")+1, len(want), "one line each")
}

// spool is an endless manifest; it counts what is read.
type spool struct {
	head io.Reader
	fill byte
	read int64
}

func (s *spool) Read(p []byte) (int, error) {
	n, err := s.head.Read(p)
	if n == 0 && err != nil {
		for n = range p {
			p[n] = s.fill
		}
		n = len(p)
	}
	s.read += int64(n)
	return n, nil
}

// TestBoundedMemory checks what large inputs, and inputs of every costly kind
// within the limit, allocate.
func TestBoundedMemory(t *testing.T) {
	large := tier.Pick(16<<20, 100<<20)
	fill := func(head, unit string, size int) func() []byte {
		return func() []byte { return []byte("---\n" + head + strings.Repeat(unit, size/len(unit)) + "\n---\n") }
	}
	inputs := map[string]func() []byte{ // made one at a time: they are large
		"a large body": func() []byte {
			return append([]byte("---\n"+validWorkspace+"---\n"), bytes.Repeat([]byte("x\n"), large/2)...)
		},
		"large frontmatter":      fill("", "a: b\n", large),
		"large without a line":   func() []byte { return bytes.Repeat([]byte("-"), large) },
		"list items":             fill("", "- a\n", maxNodes),
		"nested list items":      fill("", "- ", 2*maxNodes-8),
		"open brackets":          fill("", "[", maxNodes-8),
		"question marks":         fill("", "? ", 2*maxNodes-8),
		"keys of keys":           fill("", "a:\n ", 2*maxNodes-8),
		"distinct keys":          func() []byte { return []byte("---\n" + manyKeys(20_000) + "---\n") },
		"comments":               fill("", "#\n", 2*maxNodes-8),
		"a long text in quotes":  fill("a: \"", "\\u0041", MaxFrontmatter-60),
		"anchors":                fill("a: [", "&a ", MaxFrontmatter-8),
		"spaces":                 fill("", " ", MaxFrontmatter-8),
		"block text without end": fill("a: >\n", "  x", MaxFrontmatter-80),
	}
	for name, build := range inputs {
		t.Run(name, func(t *testing.T) {
			data, most := build(), uint64(96<<20)
			if len(data) >= large { // there is a limit to what is copied
				most = 8 << 20
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, findings := ParseWorkspace(Source{"W.md", data}, Options{})
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("allocated %d MiB in all, want at most %d", got>>20, most>>20)
			}
			for _, f := range findings {
				assert.False(t, f.Line == 0, "a finding without a line:", f)
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

func TestReadSourceIsBounded(t *testing.T) {
	s := &spool{head: strings.NewReader("---\n" + validWorkspace + "---\n"), fill: 'x'}
	src, err := ReadSource("W.md", s)
	assert.Must(t, err == nil && s.read <= 4*MaxFrontmatter, "read", s.read, err)
	w, findings := ParseWorkspace(src, Options{})
	assert.True(t, w != nil, "a long body refuses:", findings)
	endless := &spool{head: strings.NewReader("---\n" + validWorkspace), fill: '\n'}
	src = assert.Of(ReadSource("W.md", endless)).OK(t)
	w, findings = ParseWorkspace(src, Options{})
	assert.True(t, w == nil && findings.Has("frontmatter-too-large"), "got", findings)
	broken := errors.New("broken")
	_, err = ReadSource("W.md", io.MultiReader(strings.NewReader("---\n"), failing{broken}))
	assert.True(t, errors.Is(err, broken) && strings.Contains(err.Error(), "W.md"), "got", err, "want one that names the file and wraps", broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
