package providers_test

import (
	"io"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Content is as long as its Info says, or it is ErrCorrupt, be it read at once or piece by piece.
func TestLengthOfContent(t *testing.T) {
	for body, want := range map[string]error{"": providers.ErrCorrupt, "short": providers.ErrCorrupt, "as long": nil, "too long": providers.ErrCorrupt} {
		p := &everything{body: body}
		text, _, err := providers.Fetch(t.Context(), p, providers.Locator{}, providers.ReadOptions{})
		assert.Is(t, err, want, body)
		assert.True(t, err != nil || string(text) == body, "read", string(text), "of", body)
		c := assert.Of(providers.Stream(t.Context(), p, providers.Locator{}, providers.ReadOptions{})).OK(t)
		_, err = io.Copy(io.Discard, c.Body)
		assert.Is(t, err, want, body)
		assert.OK(t, c.Body.Close())
		assert.True(t, p.closed, "the body is not closed")
	}
	for opts, want := range map[providers.ReadOptions]error{{Offset: 3}: nil, {Length: 3}: providers.ErrCorrupt} {
		_, _, err := providers.Fetch(t.Context(), &everything{body: "long"}, providers.Locator{}, opts)
		assert.Is(t, err, want, opts)
	}
}
