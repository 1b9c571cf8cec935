package shellword

import (
	"os/exec"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A shell gets the word that was meant, whatever is in it.
func TestOf(t *testing.T) {
	for word, want := range map[string]string{
		"a/b-1": "a/b-1", "": "''", "my ws": "'my ws'", "it's": `'it'\''s'`, "é ü": "'é ü'", "$x": "'$x'", `a\b`: `'a\b'`,
		"z\xff": `$'z\xff'`, "a'\n\\7": `$'a\x27\x0a\x5c7'`,
	} {
		assert.Equal(t, Of(word), want)
		out := assert.Of(exec.Command("bash", "-c", "printf %s "+Of(word)).Output()).OK(t)
		assert.Equal(t, string(out), word, "what bash makes of", want)
	}
}
