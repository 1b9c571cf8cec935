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
