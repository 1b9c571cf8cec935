//go:build soak

package integration

import (
	"testing"

	"github.com/wsmount/wsmount/integration/model"
	"github.com/wsmount/wsmount/integration/tier"
)

// Two writers in one tree, with faults, remounts, kills and evictions between:
// in the end both see the same, and nothing that either was told is written is
// gone. It takes minutes; what two writers do to one bucket is in make test, too.
func TestCopyModelShared(t *testing.T) {
	t.Parallel()
	for _, f := range []copyFlavour{canonicalStore, quietly} {
		t.Run(f.name, func(t *testing.T) {
			tier.Seeds(t, 1, func(t *testing.T, seed uint64) {
				c := f.with(scarce...).mount(t)
				c.fill()
				model.RunShared(t, c.shared(), model.SharedOptions{Ops: 20_000, Settle: 500, Seed: seed})
			})
		})
	}
}
