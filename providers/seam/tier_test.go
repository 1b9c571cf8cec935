package seam_test

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// The local index alone is never replicated, and the source alone is the truth.
func TestTiers(t *testing.T) {
	for tier, want := range map[seam.Tier]struct{ syncs, derived bool }{
		"source": {true, false}, "shared-abstracts": {true, true}, "local-index": {false, true}, "": {},
	} {
		assert.Equal(t, tier.Syncs(), want.syncs, string(tier), "syncs")
		assert.Equal(t, tier.Derived(), want.derived, string(tier), "derived")
	}
	assert.Slice(t, seam.Tiers(), []seam.Tier{seam.Source, seam.SharedAbstracts, seam.LocalIndex})
}

// Each tier has a place of its own.
func TestTierLayout(t *testing.T) {
	roots := func(l seam.TierLayout) (got []string) {
		for _, tier := range seam.Tiers() {
			got = append(got, assert.Of(l.RootFor(tier)).OK(t).Key())
		}
		return append(got, l.NeverSyncRoot().Key())
	}
	assert.Slice(t, roots(seam.TierLayout{}), []string{"source", "shared-abstracts", "local-index", "local-index"})
	l := assert.Of(seam.NewTierLayout(at(t, "notes"), at(t, "notes/abstracts"), at(t, "index"))).OK(t)
	assert.Slice(t, roots(l), []string{"notes", "notes/abstracts", "index", "index"})
	for _, tier := range []seam.Tier{"", "other"} {
		assert.Is(t, assert.ErrOf(l.RootFor(tier)), providers.ErrInvalid, string(tier))
		assert.Is(t, assert.ErrOf(seam.TierLayout{}.RootFor(tier)), providers.ErrInvalid, string(tier))
	}
	a, b := at(t, "a"), at(t, "b")
	for _, same := range [][3]seam.Locator{{a, a, b}, {a, b, a}, {b, a, a}, {a, a, a}, {a, b, at(t, "a/x")}, {a, b, at(t, "b/x")}, {at(t, "b/x"), a, b}, {{}, a, b}} {
		assert.Is(t, assert.ErrOf(seam.NewTierLayout(same[0], same[1], same[2])), providers.ErrInvalid, same)
	}
}
