package mountspec

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// parseKind parses a file by the ending of its name. The result is nil, not a
// typed nil, when the manifest is refused.
func parseKind(name string, data []byte, o Options) (any, Findings) {
	src := Source{name, data}
	switch kindOf(name) {
	case "WORKSPACE":
		return untyped(ParseWorkspace(src, o))
	case "STORAGE":
		return untyped(ParseStorage(src, o))
	case "SECRETS":
		return untyped(ParseSecrets(src, o))
	case "SANDBOX":
		return untyped(ParseSandbox(src, o))
	case "POLICY":
		return untyped(ParsePolicy(src, o))
	case "CODE":
		return untyped(ParseCode(src, o))
	case "IDENTITY":
		return untyped(ParseIdentity(src, o))
	}
	panic("no kind in " + name)
}

func kindOf(name string) string {
	k := strings.TrimSuffix(filepath.Base(name), ".md")
	return k[strings.LastIndexByte(k, '.')+1:]
}

func untyped[T any](v *T, fs Findings) (any, Findings) {
	if v == nil {
		return nil, fs
	}
	return v, fs
}

// testdata returns the manifests of a directory below testdata, by file name.
func testdata(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.md"))
	assert.Must(t, err == nil && len(paths) != 0, "no testdata in", dir, err)
	out := map[string][]byte{}
	for _, p := range paths {
		data := assert.Of(os.ReadFile(p)).OK(t)
		out[filepath.Base(p)] = data
	}
	return out
}

// expected reads the "warn:", "expect:" or "normal:" lines in a manifest's body.
func expected(data []byte, word string) []string {
	var out []string
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word+": "); ok {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

func places(fs Findings) []string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%d %s %s", f.Line, f.Rule, dash(f.Path)))
	}
	slices.Sort(out)
	return out
}

// rules are those that the errors break.
func rules(fs Findings) string {
	var out []string
	for _, f := range fs.Filter(Error) {
		out = append(out, f.Rule)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestAcceptedManifests parses, prints and parses again: nothing of a manifest gets lost
// or changed on the way, but in the places that its body lists as "normal:". Strict turns
// exactly the warnings into errors.
func TestAcceptedManifests(t *testing.T) {
	for name, data := range testdata(t, "accept") {
		t.Run(name, func(t *testing.T) {
			got, findings := parseKind(name, data, Options{})
			assert.Must(t, got != nil && findings.Err() == nil, "refused", findings)
			assert.Slice(t, places(findings), expected(data, "warn"), "warnings")
			_, strict := parseKind(name, data, Options{Strict: true})
			assert.Slice(t, places(strict.Filter(Error)), places(findings), "errors of strict")
			if m, ok := got.(marshaler); ok { // an identity has no printed form of its own
				checkStable(t, name, m)
				text := assert.Of(m.Marshal()).OK(t)
				var changed []string
				differences("", plainDocument(t, data), plainDocument(t, text), &changed)
				slices.Sort(changed)
				assert.Slice(t, changed, expected(data, "normal"), "differs at", text)
			}
		})
	}
}

func TestRefusedManifests(t *testing.T) {
	for name, data := range testdata(t, "refuse") {
		t.Run(name, func(t *testing.T) {
			got, findings := parseKind(name, data, Options{})
			assert.Must(t, findings.Err() != nil, "accepted")
			assert.False(t, got != nil && findings.refuses(), "a refused manifest came with a result")
			assert.Slice(t, places(findings.Filter(Error)), expected(data, "expect"), "errors", findings)
		})
	}
}

type marshaler interface{ Marshal() ([]byte, error) }

func plainDocument(t *testing.T, data []byte) any {
	d := newDecoder("x", Options{})
	root := d.parseFrontmatter(Source{"x", data})
	assert.Must(t, root != nil && len(d.findings) == 0, d.findings)
	return value{d: d, n: root}.plain()
}

// differences lists the paths at which two documents are not the same.
func differences(path string, a, b any, out *[]string) {
	x, isMap := a.(map[string]any)
	y, bothMaps := b.(map[string]any)
	if isMap && bothMaps {
		keys := slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y)))
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			differences(join(path, key), x[key], y[key], out)
		}
		return
	}
	l, isList := a.([]any)
	m, bothLists := b.([]any)
	if isList && bothLists && len(l) == len(m) {
		for i := range l {
			differences(index(path, i), l[i], m[i], out)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		*out = append(*out, path)
	}
}

func checkStable(t testing.TB, name string, m marshaler) {
	t.Helper()
	text := assert.Of(m.Marshal()).OK(t, "print")
	second, findings := parseKind(name, text, Options{})
	assert.Must(t, second != nil, "what was printed is refused", findings, text)
	assert.Of(second.(marshaler).Marshal()).Equal(t, text, "printed again")
	withoutPositions(reflect.ValueOf(m))
	withoutPositions(reflect.ValueOf(second))
	assert.True(t, reflect.DeepEqual(any(m), second), "read back", second, "first", m, text)
}

// withoutPositions clears every Pos that can be set below v.
func withoutPositions(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			withoutPositions(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			withoutPositions(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Pos]() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			withoutPositions(v.Field(i))
		}
	}
}
