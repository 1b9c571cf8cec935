package providertest

import (
	"io"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A test whose faults never come into effect fails, also when the call was made and the content
// was too short to be cut.
func TestUnhitFaultsFail(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  Fault
		read   bool
		unhits int
	}{
		{"not called", Fault{Before: errFault}, false, 1},
		{"called", Fault{Before: errFault}, true, 0},
		{"cut", Fault{Cut: io.EOF, CutAfter: 2}, true, 0},
		{"never cut", Fault{Cut: io.EOF, CutAfter: 200}, true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := Check{Run: func(t T, inner providers.Provider) {
				faults := NewFaults(t)
				p := faults.Wrap(inner)
				put(t, p, loc("a"), "content")
				faults.Queue(providers.MethodRead, c.fault)
				if c.read {
					providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
				}
			}}
			said := failures(t, check, func(T) providers.Provider { return memory.New(memory.Options{}) })
			assert.Equal(t, len(said), c.unhits, "said", said, "failures")
		})
	}
}
