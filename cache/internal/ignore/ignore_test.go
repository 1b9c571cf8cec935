package ignore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A world is a tree of ignore files: that of each of many directories, and of two
// in it, beside that of the root. It is the same tree in all of them.
type world struct {
	dir   string
	files map[string][]byte
	rules map[string]*Rules
	dirs  map[string]bool
	asked []string
}

const places = 25 // directories, each with rules of its own

func newWorld(dir string, r *rand.Rand, cases int) *world {
	w := &world{dir: dir, files: map[string][]byte{}, rules: map[string]*Rules{}, dirs: map[string]bool{}}
	if r.IntN(4) == 0 {
		w.files[""] = content(r, 1)
	}
	for i := range places {
		top := "d" + strconv.Itoa(i)
		w.files[top] = content(r, 1+r.IntN(8))
		for _, below := range []string{"/a", "/a/b"} {
			if r.IntN(3) == 0 {
				w.files[top+below] = content(r, 1+r.IntN(3))
			}
		}
		for range cases / places {
			w.ask(top, r)
		}
	}
	for dir, text := range w.files {
		w.rules[dir] = Parse(text)
		w.isDir(dir)
	}
	return w
}

// ask adds a path to what is asked for, half of them directories.
func (w *world) ask(top string, r *rand.Rand) {
	path := top
	for range 1 + r.IntN(4) {
		path += "/" + names[r.IntN(len(names))]
	}
	w.asked = append(w.asked, path)
	if r.IntN(2) == 0 {
		w.isDir(path)
	}
	w.isDir(filepath.Dir(path))
}

// isDir makes a directory of a path, and of those above.
func (w *world) isDir(path string) {
	for ; path != "." && path != ""; path = filepath.Dir(path) {
		w.dirs[path] = true
	}
}

// covers is what this package says of a path.
func (w *world) covers(path string) bool {
	parts := strings.Split(path, "/")
	return Covers(parts, w.dirs[path], func(n int) *Rules { return w.rules[strings.Join(parts[:n], "/")] })
}

// git is what the git program says of all paths.
func (w *world) git(t *testing.T) map[string]bool {
	t.Helper()
	for dir := range w.dirs {
		w.do(t, os.MkdirAll(filepath.Join(w.dir, dir), 0o755))
	}
	for dir, text := range w.files {
		w.do(t, os.WriteFile(filepath.Join(w.dir, dir, ".gitignore"), text, 0o644))
	}
	run := func(in string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = w.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.Output()
		w.do(t, err)
		return out
	}
	run("", "init", "-q", "--template=", ".")
	out := bytes.Split(run(strings.Join(w.asked, "\x00")+"\x00", "check-ignore", "--stdin", "-z", "-v", "-n", "--no-index"), []byte{0})
	said := map[string]bool{}
	for ; len(out) > 4; out = out[4:] {
		said[string(out[3])] = len(out[2]) > 0 && out[2][0] != '!'
	}
	return said
}

func (w *world) do(t *testing.T, err error) {
	t.Helper()
	assert.OK(t, err)
}

// names are what paths are made of. Patterns are made of them, and of what means
// something in patterns.
var names = []string{"a", "b", "ab", "A", "aa", "a b", "a ", "a  ", `a\`, "!a", "#a", "[a]", "a*", "*", "**", "?", ".a", "a.o", "x.o", ".o",
	"é", "\xff", "a\xff", "a\r", "a\tb", "a-b", "]", "^", "-", "a\nb", "abcabc", "9", "_"}

var tokens = []string{"*", "*", "**", "**", "**/", "/**", "/**/", "/", "/", "//", "?", "a", "b", "ab", ".o", "[a-z]", "[!x]", "[^a]", "[[:alpha:]]", "[[:punct:]_]", "[[:space:]]",
	"[[:none:]]", "[[:alpha:", "[[:]", "[]a]", "[!]a]", "[a", "[a-", "[z-a]", "[a-]", "[\\]]", "[a-\\b]", "[/]", "[!/]", "[[:xdigit:][:upper:]]", "[", "]", "\\", "\\a", "\\*", "\\ ", " ", "  ", "\\\\", "!", "\\!", "#", "\\#",
	"\xff", "é", "\x00", "\r", "-", "[\x01-\xff]", "***", "a**", "**a", "/*", "*/"}

func content(r *rand.Rand, lines int) []byte {
	var b bytes.Buffer
	if r.IntN(8) == 0 {
		b.WriteString("\xef\xbb\xbf")
	}
	for range lines {
		b.WriteString(pattern(r))
		b.WriteString([]string{"\n", "\n", "\n", "\r\n", " \n", "\n\n", "\n#\n"}[r.IntN(7)])
	}
	if r.IntN(4) == 0 {
		return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	return b.Bytes()
}

// pattern is a path of which one thing or another was replaced, or anything.
func pattern(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(4) == 0 {
		b.WriteByte('!')
	}
	if r.IntN(4) == 0 {
		b.WriteByte('/')
	}
	for i := range 1 + r.IntN(4) {
		switch {
		case i > 0 && r.IntN(3) > 0:
			b.WriteByte('/')
			fallthrough
		case r.IntN(2) == 0:
			b.WriteString(names[r.IntN(len(names))])
		}
		for range r.IntN(3) {
			b.WriteString(tokens[r.IntN(len(tokens))])
		}
	}
	if r.IntN(4) == 0 {
		b.WriteByte('/')
	}
	return b.String()
}

// What this package says of hostile rules is what git says. WSMOUNT_IGNORE_CASES
// asks for another number of cases.
func TestLikeGit(t *testing.T) {
	tier.RequireTools(t, "git")
	cases, seed := tier.Pick(1000, 20_000), tier.Seed(t)
	if n, err := strconv.Atoi(os.Getenv("WSMOUNT_IGNORE_CASES")); err == nil {
		cases = n
	}
	r := rand.New(rand.NewPCG(seed, 0))
	done, ignored := 0, 0
	// A world may have a rule above all of it that decides for every path: that
	// there are enough of both is no matter of luck only over many.
	for done < cases || (ignored < cases/50 || done-ignored < cases/10) && done < 20*cases {
		w := newWorld(t.TempDir(), r, 1000)
		said := w.git(t)
		for _, path := range w.asked {
			git, known := said[path]
			assert.Must(t, known, "git says nothing of", path)
			if got := w.covers(path); got != git {
				t.Errorf("seed %d: %q (directory %v) is ignored: %v, and git says %v; the rules:%s", seed, path, w.dirs[path], got, git, w.above(path))
			}
			if done++; git {
				ignored++
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	assert.True(t, ignored >= cases/50 && done-ignored >= cases/10, "of", done, "cases", ignored, "are ignored: that tells little")
	t.Logf("%d cases, %d of them ignored", done, ignored)
}

// above are the files that count for a path.
func (w *world) above(path string) string {
	var b strings.Builder
	for dir := path; dir != ""; dir = strings.TrimSuffix(strings.TrimSuffix(dir, filepath.Base(dir)), "/") {
		if text, ok := w.files[dir]; ok {
			fmt.Fprintf(&b, "\n\t%s: %q", dir, text)
		}
	}
	return b.String() + fmt.Sprintf("\n\troot: %q", w.files[""])
}

// What is said to be the same below two directories is.
func TestSame(t *testing.T) {
	r := rand.New(rand.NewPCG(tier.Seed(t), 0))
	same := 0
	for range 20000 {
		rules := Parse(content(r, 1+r.IntN(3)))
		dir := func() string { return names[r.IntN(len(names))] + "/" + names[r.IntN(len(names))] }
		a, b, rest := dir(), dir(), names[r.IntN(len(names))]
		if r.IntN(2) == 0 {
			rest = dir()
		}
		if isDir := r.IntN(2) == 0; rules.Same(a, b) {
			same++
			assert.Must(t, rules.Match(a+"/"+rest, isDir) == rules.Match(b+"/"+rest, isDir), "not the same of", rest, "below", a, "and", b, rules.rules)
		}
	}
	assert.True(t, same >= 1000, "only", same, "of 20000 were said to be the same")
	for rules, want := range map[string]bool{"node_modules/\n*.log\n**/*.pyc\n/build\n/dist/*\ndocs/_build/\n": true, "a/x\n": false, "/b/*\n": false, "*/x\n": false, "**/y/z\n": false} {
		assert.Equal(t, Parse([]byte(rules)).Same("a", "b"), want, rules, "says the same below a and b")
	}
}

// No pattern makes a comparison explode: with plain backtracking these take
// longer than anybody waits.
func TestNoPatternIsSlow(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rules := Parse([]byte(strings.Repeat("**/a*/", 60) + "z\n" + strings.Repeat("*a", 60) + "\n" + strings.Repeat("**/a/", 60) + "**/z"))
	done := make(chan Verdict)
	go func() { done <- rules.Match(strings.Repeat("aa/", 200)+strings.Repeat("a", 200)+"b", false) }()
	select {
	case v := <-done:
		assert.Equal(t, v, Unsaid, "matches")
	case <-ctx.Done():
		t.Error("takes too long")
	}
}
