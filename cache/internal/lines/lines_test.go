package lines

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

var labels = Labels{Ours: "here", Base: "before", Theirs: "there"}

// conflict is what Merge writes where two sides exclude each other.
func conflict(ours, theirs string) string {
	return "<<<<<<< here\n" + ours + "=======\n" + theirs + ">>>>>>> there\n"
}

// spelled is a text of one letter per line, which are easier to read without the
// newlines; a text that has a newline stands for itself.
func spelled(s string) []byte {
	if strings.Contains(s, "\n") {
		return []byte(s)
	}
	var b strings.Builder
	for _, c := range s {
		b.WriteString(string(c) + "\n")
	}
	return []byte(b.String())
}

var merges = []struct {
	name               string
	base, ours, theirs string
	want               string
	conflicts          int
}{
	{"nothing changed", "abc", "abc", "abc", "abc", 0},
	{"all empty", "", "", "", "", 0},
	{"ours changed", "abc", "aXc", "abc", "aXc", 0},
	{"theirs changed", "abc", "abc", "aXc", "aXc", 0},
	{"both changed, apart", "abcde", "Xbcde", "abcdX", "XbcdX", 0},
	{"both changed, with one line between", "abc", "Xbc", "abX", "XbX", 0},
	{"both changed, side by side", "abcd", "aXcd", "abYd", "a\n" + conflict("X\nc\n", "b\nY\n") + "d\n", 1},
	{"both the same", "abc", "aXc", "aXc", "aXc", 0},
	{"both the same, from nothing", "", "abc", "abc", "abc", 0},
	{"both the same and theirs more, apart", "abcde", "Xbcde", "XbcdY", "XbcdY", 0},
	{"both differently", "abc", "aXc", "aYc", "a\n" + conflict("X\n", "Y\n") + "c\n", 1},
	{"both, from nothing", "", "a", "b", conflict("a\n", "b\n"), 1},
	{"both add at the end", "a", "ab", "ac", "a\n" + conflict("b\n", "c\n"), 1},
	{"both add, one of them more", "a", "ab", "abc", "a\nb\n" + conflict("", "c\n"), 1},
	{"ours deleted, theirs changed", "abc", "ac", "aXc", "a\n" + conflict("", "X\n") + "c\n", 1},
	{"ours deleted all, theirs changed", "abc", "", "aXc", conflict("", "a\nX\nc\n"), 1},
	{"ours deleted all", "abc", "", "abc", "", 0},
	{"both deleted all", "abc", "", "", "", 0},
	{"both deleted, one of them more", "abcd", "ad", "a", "a\n" + conflict("d\n", ""), 1},
	{"a block moved by both", "abcdef", "defabc", "defabc", "defabc", 0},
	{"a block moved, and changed where it was", "abcdef", "defabc", "abXdef",
		conflict("", "a\nb\nX\n") + "d\ne\nf\na\nb\nc\n", 1},
	{"conflicts with two lines between become one", "abcdef", "abXcdX", "abYcdY",
		"a\nb\n" + conflict("X\nc\nd\nX\n", "Y\nc\nd\nY\n"), 1},
	{"conflicts with four lines between stay two", "abcdef", "XbcdeX", "YbcdeY",
		conflict("X\n", "Y\n") + "b\nc\nd\ne\n" + conflict("X\n", "Y\n"), 2},
	{"conflicts with four braces between become one", "a{{}}b", "X{{}}X", "Y{{}}Y",
		conflict("X\n{\n{\n}\n}\nX\n", "Y\n{\n{\n}\n}\nY\n"), 1},
	{"a function added behind its like", "a\n{\n}\n\nb\n{\n}\n", "a\n{\n}\n\nX\n{\n}\n\nb\n{\n}\n", "a\n{\n}\n\nb\n{\nY\n}\n",
		"a\n{\n}\n\nX\n{\n}\n\nb\n{\nY\n}\n", 0},
	{"one of many blank lines", "a\n\n\n\nb\n", "a\n\n\n\n\nb\n", "a\n\n\nb\n", "a\n\n\n" + conflict("\n\n", "") + "b\n", 1},

	{"no final newline, nothing changed", "a\nb", "a\nb", "a\nb", "a\nb", 0},
	{"no final newline on any side", "a\nb\nc", "X\nb\nc", "a\nb\nY", "X\nb\nY", 0},
	{"ours lost the final newline", "a\nb\n", "a\nb", "a\nb\n", "a\nb", 0},
	{"theirs lost the final newline", "a\nb\n", "a\nb\n", "a\nb", "a\nb", 0},
	{"both lost the final newline", "a\nb\n", "a\nb", "a\nb", "a\nb", 0},
	{"ours got a final newline and theirs a line", "a\nb", "a\nb\n", "a\nb\nc", "a\nb\n" + conflict("", "c\n"), 1},
	{"ours lost the final newline, theirs changed apart", "a\nb\nc\n", "a\nb\nc", "X\nb\nc\n", "X\nb\nc", 0},
	{"a conflict without final newlines", "a\nb", "a\nX", "a\nY", "a\n" + conflict("X\n", "Y\n"), 1},
	{"only the final newline differs in a conflict", "x\na\n", "x\nb\n", "x\nb", "x\n" + conflict("b\n", "b\n"), 1},

	{"CR LF", "a\r\nb\r\nc\r\n", "X\r\nb\r\nc\r\n", "a\r\nb\r\nY\r\n", "X\r\nb\r\nY\r\n", 0},
	{"CR LF, and the markers too", "a\r\nb\r\n", "a\r\nX\r\n", "a\r\nY\r\n",
		"a\r\n<<<<<<< here\r\nX\r\n=======\r\nY\r\n>>>>>>> there\r\n", 1},
	{"CR LF, and the newline that was missing too", "a\r\nb", "a\r\nX", "a\r\nY",
		"a\r\n<<<<<<< here\r\nX\r\n=======\r\nY\r\n>>>>>>> there\r\n", 1},
	{"CR LF on one side only", "a\nb\n", "a\r\nb\r\n", "a\nX\n", conflict("a\r\nb\r\n", "a\nX\n"), 1},
	{"CR LF for LF on one side", "a\nb\n", "a\r\nb\r\n", "a\nb\n", "a\r\nb\r\n", 0},
	{"a lone CR ends no line", "a\rb\nc\n", "a\rX\nc\n", "a\rb\nc\n", "a\rX\nc\n", 0},
	{"NUL bytes", "a\x00\nb\n\x00", "a\x00\nb\nX", "\x00\nb\n\x00", "\x00\nb\nX", 0},
	{"no UTF-8", "\xff\nb\n\xfe\n", "\xff\xff\nb\n\xfe\n", "\xff\nb\n\xfe\xfe\n", "\xff\xff\nb\n\xfe\xfe\n", 0},
}

func TestMerge(t *testing.T) {
	for _, c := range merges {
		t.Run(c.name, func(t *testing.T) {
			got := Merge(spelled(c.base), spelled(c.ours), spelled(c.theirs), labels)
			want := string(spelled(c.want))
			assert.True(t, string(got.Content) == want && got.Conflicts == c.conflicts, "got", got.Content, "with", got.Conflicts, "conflicts, want", want, "with", c.conflicts)
		})
	}
}

func TestUnion(t *testing.T) {
	for _, c := range []struct{ name, base, ours, theirs, want string }{
		{"nothing changed", "abc", "abc", "abc", "abc"},
		{"apart", "abcd", "Xbcd", "abcY", "XbcY"},
		{"both add at the end", "a", "ab", "ac", "abc"},
		{"both the same", "a", "ab", "ab", "ab"},
		{"without final newlines", "a\nb", "a\nb\nc", "a\nb\nd", "a\nb\nc\nd"},
		{"CR LF without a final one", "a\r\nb\r\n", "a\r\nb\r\nc", "a\r\nb\r\nd", "a\r\nb\r\nc\r\nd"},
		{"ours deleted", "abc", "ac", "aXc", "aXc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Union(spelled(c.base), spelled(c.ours), spelled(c.theirs))
			assert.Equal(t, string(got), string(spelled(c.want)))
		})
	}
}

func TestLabels(t *testing.T) {
	got := Merge(spelled("a"), spelled("b"), spelled("c"), Labels{Theirs: "their 2nd"})
	want := "<<<<<<<\nb\n=======\nc\n>>>>>>> their 2nd\n"
	assert.Equal(t, string(got.Content), want)
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       bool
	}{
		{"empty", "", true},
		{"ASCII", "a\nb", true},
		{"no UTF-8", "\xff\xfe", true},
		{"NUL", "a\x00", false},
		{"NUL in the last byte that is looked at", strings.Repeat("a", 7999) + "\x00", false},
		{"NUL behind that", strings.Repeat("a", 8000) + "\x00", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, Text([]byte(c.data)), c.want)
		})
	}
}
