package wrap

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want []string
	}{
		{"", 5, []string{""}},
		{"one two", 7, []string{"one two"}},
		{"one  two three", 8, []string{"one  two", "three"}},
		{"one abcdefgh ij", 4, []string{"one", "abcdefgh", "ij"}},
		{"one  two three", 0, []string{"one  two three"}},
		{"äöü äöü", 3, []string{"äöü", "äöü"}},
	} {
		assert.Slice(t, Lines(tt.text, tt.most), tt.want, tt.text)
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{"a\nb\x1b\u0085c ": "a b  c", "w\xff": `w\xff`, "w\xfe/é": `w\xfe/é`, "w\ufffd": "w\ufffd"} {
		assert.Equal(t, OneLine(text), want, text)
	}
}

// A text is cut where a line ends, or between two characters.
func TestBeginning(t *testing.T) {
	for _, tt := range []struct {
		text    string
		most    int
		kept    string
		omitted int
	}{
		{"a\nb\n", 4, "a\nb\n", 0}, {"a\nb\n", 3, "a\n", 2}, {"äö", 3, "ä", 2}, {"äö", 1, "", 4}, {"a\xff", 9, "a\uFFFD", 0}, {"", 1, "", 0},
	} {
		kept, omitted := Beginning(tt.text, tt.most)
		assert.True(t, kept == tt.kept && omitted == tt.omitted, tt.text, tt.most, "got", kept, omitted)
	}
}
