package store

import (
	"testing"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
	"github.com/wsmount/wsmount/providers/seam/seamtest"
)

// A working copy that is not mounted is a backend like any.
func TestUnservedContract(t *testing.T) {
	seamtest.Run(t, func(t providertest.T) seam.Backend {
		v, err := cache.Open(t.Context(), memory.New(memory.Options{}), cache.Options{StateDir: t.TempDir(), Provider: "memory", Policy: cache.Policy{NoWait: true, Commit: cache.DueAsked}})
		assert.OK(t, err)
		return newUnserved(v, seam.Capabilities{}, false, v.Close)
	})
}
