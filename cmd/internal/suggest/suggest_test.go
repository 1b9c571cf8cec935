package suggest

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestNear(t *testing.T) {
	known := []string{"mount", "umount", "status", "event", "validate", "turn-start", "turn-end"}
	tests := []struct {
		name string
		want []string
	}{
		{"moutn", []string{"mount", "umount"}}, // a swap, and a swap with a letter
		{"stauts", []string{"status"}},
		{"Status", []string{"status"}},
		{"turn-strat", []string{"turn-start"}},
		{"pull", nil},
		{"x", nil},
		{"", nil},
	}
	for _, tt := range tests {
		assert.Slice(t, Near(tt.name, known), tt.want, tt.name)
	}
}

func TestNearReturnsTheNearestThree(t *testing.T) {
	got := Near("abcdef", []string{"abcdxx", "abcdeg", "abcdef", "abcdxf", "abcxxf"})
	assert.Slice(t, got, []string{"abcdef", "abcdeg", "abcdxf"})
}

func TestPhrase(t *testing.T) {
	assert.Equal(t, Phrase("evnt", []string{"event", "mount"}), "did you mean event?")
	assert.Equal(t, Phrase("zzz", []string{"event"}), "", "for a name that is near to none")
}
