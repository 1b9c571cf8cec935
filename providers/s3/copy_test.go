package s3

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// testCopyShrunk: what was to be copied is shorter by now, which some services
// call a wrong range before they look at the condition.
func testCopyShrunk(t *testing.T, w *world) {
	p := w.fork(t)
	long, err := p.Write(t.Context(), loc("from"), providers.String("a long content"), absent)
	assert.OK(t, err)
	if _, err := p.Write(t.Context(), loc("from"), providers.String("short"), providers.WriteOptions{If: providers.IfVersion(long.Version)}); err != nil {
		t.Fatal(err)
	}
	u, err := p.StartParts(t.Context(), loc("to"), absent)
	assert.OK(t, err)
	defer u.Abort(t.Context())
	assert.Is(t, u.CopyPart(t.Context(), 1, loc("from"), providers.ReadOptions{Version: long.Version}), providers.ErrConflict)
}
