package ui

import (
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Nothing of a name is hidden, and what is plain stays as it is.
func TestVisible(t *testing.T) {
	for s, want := range map[string]string{
		"docs/plan é 日本.md": "docs/plan é 日本.md", "a\tb": "a\tb", "a\nb\x00\x7f": `a\nb\x00\x7f`, "a\u202eb\u200b": `a\u202eb\u200b`, "a\xffb\ufffd": "a\\xffb\ufffd", "\ufeff": `\ufeff`,
	} {
		assert.Equal(t, visible(s), want, fmt.Sprintf("%q", s))
	}
	assert.Equal(t, visibleText("a\r\nb\x1b\n"), "a\\r\nb\\x1b\n")
}

// Of the beginning of a text the last character may be cut, and no other.
func TestIsText(t *testing.T) {
	for _, tt := range []struct {
		b         string
		beginning bool
		want      bool
	}{
		{"", false, true}, {"ü", false, true}, {"a\x00", false, false}, {"ü\xc3", false, false}, {"ü\xc3", true, true}, {"日\xe6\x97", true, true},
		{"\xff\xff\xff\xff", true, false}, {"\xc3a", true, false}, {"a\x00\xc3", true, false},
	} {
		assert.Equal(t, isText([]byte(tt.b), tt.beginning), tt.want, fmt.Sprintf("%q", tt.b), tt.beginning)
	}
}

// A diff is taken apart by the lengths that it tells, whatever its lines look like.
func TestParseDiff(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "[]",
		"--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n": "[{Name:a → b Lines:[{Kind:at Text:@@ -1 +1 @@} {Kind:del Text:-x} {Kind:add Text:+y}] Note:}]",
		"--- a\n+++ a\n@@ -1,2 +1,2 @@\n---- a\n++++ a\n-+++ b\n+--- b\n--- /dev/null\n+++ c\n": "[{Name:a Lines:[{Kind:at Text:@@ -1,2 +1,2 @@} {Kind:del Text:---- a} {Kind:add Text:++++ a} {Kind:del Text:-+++ b} {Kind:add Text:+--- b}] Note:} {Name:new: c Lines:[] Note:}]",
		"--- a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n\\ No newline at end of file\n":         "[{Name:removed: a Lines:[{Kind:at Text:@@ -1,2 +0,0 @@} {Kind:del Text:-x} {Kind:del Text:-y} {Kind:note Text:\\ No newline at end of file}] Note:}]",
		"Binary files a and b differ\n--- c\n+++ c\n@@ odd @@\n x\n":                            "[{Name: Lines:[] Note:Binary files a and b differ} {Name:c Lines:[{Kind:at Text:@@ odd @@} {Kind:same Text: x}] Note:}]",
	} {
		files, left := parseDiff(text)
		assert.Equal(t, fmt.Sprintf("%+v", files), want)
		assert.Equal(t, left, 0)
	}
}
