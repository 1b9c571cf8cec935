package mountspec

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// TestExclude has what each sign of a pattern means; TestExcludeAgainstRegexp has how they
// go together.
func TestExclude(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		isDir, want   bool
	}{
		{".runs/", ".runs", true, true},
		{".runs/", ".runs", false, false}, // a file of that name is not the directory
		{".runs/", ".runs/a/b", false, true},
		{".runs/", "x/.runs", true, false}, // anchored at the root
		{"notes", "notes", false, true},
		{"notes", "notes/a", false, true},
		{"/notes", "notes", false, true},
		{"./notes", "notes", false, true},
		{"*.log", "x.log", false, true},
		{"*.log", "d/x.log", false, false},
		{"**/*.log", "x.log", false, true},
		{"**/*.log", "a/b/x.log", false, true},
		{"**/build/", "a/build", false, false},
		{"a/**/z", "a/z", false, true},
		{"a/**/z", "a/b/c/z", false, true},
		{"a/**", "a", true, false}, // only what lies below
		{"a/**", "a/b", false, true},
		{"**/a/**/b", "a/b", false, true},
		{"a*b*c", "a1b2c", false, true},
		{"a*a", "a", false, false}, // the ends do not overlap
		{`\*.log`, "*.log", false, true},
		{`\*.log`, "x.log", false, false},
		{`a\[1\].txt`, "a[1].txt", false, true},
		{`\!keep`, "!keep", false, true},
		{`back\\slash`, `back\slash`, false, true},
		{"A", "a", false, false},
		{"a", "a/", true, true},
		{"a", "/a", false, true},
		{"a", "", true, false}, // the root is never excluded
		{"**", "", true, false},
	} {
		set, err := CompileExclude([]string{c.pattern})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		assert.Equal(t, set.Match(c.path, c.isDir), c.want, c.pattern, "matches", c.path, "dir", c.isDir)
	}
}

func TestExcludeRefuses(t *testing.T) {
	for _, p := range []string{"", "/", "./", "!x", "a//b", "../x", "a/../b", "./../x", "a/.", "a**", "**a/b", "a/**b", "x?", "[ab]", "a{b,c}", `x\`, `a\/b`, strings.Repeat("x", maxPatternLength+1)} {
		_, err := CompileExclude([]string{"ok", p})
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "exclude: ") && (p == "" || len(p) >= 60 || strings.Contains(err.Error(), show(p))), p, "got", err, "want an error that names it")
	}
	assert.True(t, assert.ErrOf(CompileExclude(make([]string, maxPatterns+1))) != nil, "any number of patterns is accepted")
	many := "provider: cloud-bucket\nconfig: { bucket: files }\nexclude: [" + strings.Repeat("a,", maxPatterns+1) + "]\n"
	s, findings := ParseStorage(Source{"S.md", []byte("---\n" + many + "---\n")}, Options{})
	assert.True(t, s == nil && findings.Has("exclude-pattern"), "any number of patterns parses", findings)
}

func TestExcludeEmpty(t *testing.T) {
	var none *ExcludeSet
	set, _ := CompileExclude([]string{"a"})
	assert.True(t, !none.Match("x", false) && !(&ExcludeSet{}).Match("x", true) && none.Empty() && !set.Empty(), "an empty set excludes something, or is not known to be empty")
}

// TestExcludeAgainstRegexp compares with a translation into regular
// expressions, which is slower and simpler.
func TestExcludeAgainstRegexp(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "*b", "*a*", "**"})
	name := rapid.StringMatching(`[ab]{1,3}`)
	tier.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(segment, 1, 5).Draw(t, "pattern")
		p := strings.Join(segments, "/") + rapid.SampledFrom([]string{"", "/"}).Draw(t, "end")
		file := path.Join(rapid.SliceOfN(name, 1, 5).Draw(t, "path")...)
		isDir := rapid.Bool().Draw(t, "isDir")
		set := assert.Of(CompileExclude([]string{p})).OK(t)
		got, want := set.Match(file, isDir), regexpMatch(segments, strings.HasSuffix(p, "/"), file, isDir)
		assert.Must(t, got == want, p, "matches", file, "dir", isDir, got, want)
	})
}

// What is said to be the same below two directories is, and the lists that are
// in use are known to be where directories are renamed.
func TestExcludeSameBelow(t *testing.T) {
	for _, c := range []struct {
		patterns, a, b string
		want           bool
	}{
		{"", "a", "b", true},
		{".runs/ **/*.log **/build/ notes", "a", "b", true},
		{".runs/ **/*.log **/build/ notes", "a", "deep/er/b", true},
		{".runs/ **/*.log **/build/ notes", "notes", "b", false},
		{"notes", "notes/x", "b", false},
		{"notes", "notes/x", "notes", true},
		{"a/tmp", "a", "b", false},
		{"a/tmp", "b", "a", false},
		{"a/tmp", "a/x", "b", true},
		{"**/a/tmp", "a", "x/a", true},
		{"**/a/tmp", "a", "b", false},
		{"a/**", "a", "b", false},
		{"*/x", "a", "b", true},
		{"*/x", "a", "b/c", false},
	} {
		set := assert.Of(CompileExclude(strings.Fields(c.patterns))).OK(t)
		assert.Equal(t, set.SameBelow(c.a, c.b), c.want, c.patterns, "the same below", c.a, "and", c.b)
	}
	segment := rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "*b", "**"})
	some := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,2}`), 1, 4)
	tier.Check(t, func(t *rapid.T) {
		p := strings.Join(rapid.SliceOfN(segment, 1, 4).Draw(t, "pattern"), "/") + rapid.SampledFrom([]string{"", "/"}).Draw(t, "end")
		a, b, rest := path.Join(some.Draw(t, "a")...), path.Join(some.Draw(t, "b")...), path.Join(some.Draw(t, "rest")...)
		isDir := rapid.Bool().Draw(t, "isDir")
		set := assert.Of(CompileExclude([]string{p})).OK(t)
		assert.Must(t, !set.SameBelow(a, b) || set.Match(a+"/"+rest, isDir) == set.Match(b+"/"+rest, isDir), p, "not the same of", rest, "below", a, "and", b)
	})
}

func regexpMatch(segments []string, dirOnly bool, file string, isDir bool) bool {
	var b strings.Builder
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "**" && last:
			b.WriteString(`([^/]+/)+`)
		case s == "**":
			b.WriteString(`([^/]+/)*`)
		default:
			b.WriteString(strings.ReplaceAll(s, "*", "[^/]*") + "/")
		}
	}
	re := regexp.MustCompile("^" + b.String() + "$")
	parts := strings.Split(file, "/")
	for i := range parts {
		prefix := strings.Join(parts[:i+1], "/") + "/"
		below := i < len(parts)-1 || isDir
		if re.MatchString(prefix) && (below || !dirOnly) {
			return true
		}
	}
	return false
}

// TestExcludeIsFast checks that no pattern makes matching explode: with
// backtracking these take longer than the age of the universe, so that it ends.
func TestExcludeIsFast(t *testing.T) {
	set := assert.Of(CompileExclude([]string{strings.Repeat("**/a*/", 200) + "z", strings.Repeat("*a", 1000)})).OK(t)
	assert.True(t, !set.Match(strings.Repeat("aa/", 300)+"y", false) && !set.Match(strings.Repeat("a", 4000)+"b", false), "matches")
}
