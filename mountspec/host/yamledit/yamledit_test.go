package yamledit

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/wsmount/wsmount/integration/assert"
)

// value reads a value as it is written in a text; "" takes the pair out.
func value(t *testing.T, text string) *yaml.Node {
	if text == "" {
		return nil
	}
	var doc yaml.Node
	assert.OK(t, yaml.Unmarshal([]byte(text), &doc))
	return doc.Content[0]
}

// Only what holds the value is written anew: the rest has its comments, its empty lines
// and its spaces.
func TestSet(t *testing.T) {
	for _, c := range []struct{ name, text, path, value, want string }{
		{"a value", "# top\n\na:   1   # one\n\n# about b\nb: 2\n", "a", "3", "# top\n\na: 3 # one\n\n# about b\nb: 2\n"},
		{"the last one, without a line's end", "a: 1\nb: 2", "b", "3", "a: 1\nb: 3\n"},
		{"a new key of the whole", "# top\na: 1\n\n# end\n", "c", "[ x ]", "# top\na: 1\n\n# end\nc: [x]\n"},
		{"in an empty text", "", "w.a", "1", "w:\n  a: 1\n"},
		{"in a text of comments", "# nothing\n", "a", "1", "# nothing\na: 1\n"},
		{"a new key of an entry", "w:\n    # about x\n    x:\n        p: /x   # here\n\n    # about y\n    y:   /y\n", "w.x.n", "Ann", "w:\n    # about x\n    x:\n      p: /x # here\n      n: Ann\n\n    # about y\n    y:   /y\n"},
		{"beside others", "w:\n  x:\n    p: /x\n\n    n:  A  # name\n    # about q\n    q:  1\n", "w.x.n", "B", "w:\n  x:\n    p: /x\n\n    n: B # name\n    # about q\n    q:  1\n"},
		{"in flow style", "w:\n  x:   { p: /x, n: A }\n  y:   { p: /y }\nz:   1\n", "w.x.n", "B", "w:\n  x: {p: /x, n: B}\n  y:   { p: /y }\nz:   1\n"},
		{"all in flow style", "# top\nw: { x: { p: /x } }\nz:   1\n", "w.x.n", "B", "# top\nw: {x: {p: /x, n: B}}\nz:   1\n"},
		{"the whole in flow style", "# top\n{ a: 1, b: 2 }\n", "b", "3", "# top\n{a: 1, b: 3}\n"},
		{"taken out", "w:\n  x:\n    p: /x\n    n: A\n  y: 1\n", "w.x.n", "", "w:\n  x:\n    p: /x\n  y: 1\n"},
		{"the last of its block", "w:\n  # about x\n  x:\n    n: A # name\n  y:   1\n", "w.x.n", "", "w:\n  # about x\n  x: {}\n  y:   1\n"},
		{"a scalar becomes a mapping", "w:\n  x: /x # there\n  y:   1\n", "w.x", "{ p: /x, n: A }", "w:\n  x: {p: /x, n: A} # there\n  y:   1\n"},
		{"quotes stay", "a: 'x'\n", "a", "y", "a: 'y'\n"},
		{"a text that looks like another type", "a: x\n", "a", `"yes"`, "a: \"yes\"\n"},
		{"what looks like a comment and is text", "a: |\n  x\n  # y\nb: 1\n", "b", "2", "a: |\n  x\n  # y\nb: 2\n"},
		{"text over lines", "a: 1\nd: |\n  x\n\n  # y\n# end\n", "d", "|\n  p\n\n  # q\n", "a: 1\nd: |\n  p\n\n  # q\n# end\n"},
		{"lines of another system", "a: 1\r\nb: 2\r\nc: 3\r\n", "b", "4", "a: 1\r\nb: 4\r\nc: 3\r\n"},
		{"a list at the key's own column", "t:\n- x\n- y\nb: 1\n", "t", "[z]", "t: [z]\nb: 1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := assert.Of(Set([]byte(c.text), strings.Split(c.path, "."), value(t, c.value))).OK(t)
			assert.Equal(t, string(got), c.want)
			assert.Of(Set(got, strings.Split(c.path, "."), value(t, c.value))).Equal(t, []byte(c.want), "the same again")
		})
	}
}

// What would lose something is refused, and so is what cannot be.
func TestSetRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, path, says string }{
		{"no YAML", "a: [\n", "a", "yaml"},
		{"no mapping", "a: 1\n", "a.b", "no mapping"},
		{"a value that stands twice", "a: &x { b: 1 }\nc: { d: *x, e: 1 }\n", "c.e", "by hand"},
		{"after the end of the document", "a: 1\n...\n", "b", "by hand"},
		{"a comment that the library drops", "a: { # one\n  b: 1 }\n", "a.b", "by hand"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Set([]byte(c.text), strings.Split(c.path, "."), Scalar("x"))
			assert.Must(t, err != nil, got)
			assert.Contains(t, err.Error(), c.says)
		})
	}
}

func TestAt(t *testing.T) {
	text := []byte("w: { x: { n: A } }\n")
	n := assert.Of(At(text, []string{"w", "x", "n"})).OK(t)
	assert.Equal(t, n.Value, "A")
	for _, path := range [][]string{{"v"}, {"w", "y"}, {"w", "x", "n", "m"}} {
		n := assert.Of(At(text, path)).OK(t)
		assert.True(t, n == nil, path, "leads to", n)
	}
}
