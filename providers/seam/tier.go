package seam

import (
	"context"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Tier is a part of memory, by the owner of the truth in it, and whether a program outside may
// replicate it. The zero Tier is none, and neither syncs nor is derived.
type Tier string

// The tiers.
const (
	Source          Tier = "source"           // written content: the truth, source of the others
	SharedAbstracts Tier = "shared-abstracts" // made from it, and of use on every machine
	LocalIndex      Tier = "local-index"      // made from it, and a database: a replica of it would be damaged
)

// Tiers are all of them.
func Tiers() []Tier { return []Tier{Source, SharedAbstracts, LocalIndex} }

// Syncs reports whether a program outside may replicate the tier, as it does a backend that
// promises Capabilities.Sync.
func (t Tier) Syncs() bool { return t == Source || t == SharedAbstracts }

// Derived reports whether the tier can be made anew from Source, and so is never the truth.
func (t Tier) Derived() bool { return t == SharedAbstracts || t == LocalIndex }

// TierLayout has the places of the tiers. It names places, and makes none. The zero TierLayout
// has each under the tier's own name; NewTierLayout makes another.
type TierLayout struct{ roots map[Tier]Locator }

// NewTierLayout has the tiers at three places. Two that are the same are providers.ErrInvalid:
// derived content must not replace Source. So is a LocalIndex that lies in another tier, with
// which it would be replicated, or has one in it.
func NewTierLayout(source, sharedAbstracts, localIndex Locator) (TierLayout, error) {
	l := TierLayout{map[Tier]Locator{Source: source, SharedAbstracts: sharedAbstracts, LocalIndex: localIndex}}
	has := map[Locator]Tier{}
	for _, t := range Tiers() {
		at := l.roots[t]
		if other, taken := has[at]; taken {
			return TierLayout{}, fmt.Errorf("the tiers %s and %s would both lie at %q: %w", other, t, at, providers.ErrInvalid)
		}
		has[at] = t
		if t != LocalIndex && (localIndex.Within(at) || at.Within(localIndex)) {
			return TierLayout{}, fmt.Errorf("of the tiers %s and %s, at %q and %q, one would lie in the other: %w", t, LocalIndex, at, localIndex, providers.ErrInvalid)
		}
	}
	return l, nil
}

// RootFor is the place of a tier; the error for an unknown one is providers.ErrInvalid.
func (l TierLayout) RootFor(t Tier) (Locator, error) {
	if at, ok := l.roots[t]; ok {
		return at, nil
	}
	if !t.Syncs() && !t.Derived() {
		return Locator{}, fmt.Errorf("there is no tier %q: %w", t, providers.ErrInvalid)
	}
	return ParseLocator(string(t))
}

// NeverSyncRoot is the place of the tier that nothing may replicate.
func (l TierLayout) NeverSyncRoot() Locator {
	at, _ := l.RootFor(LocalIndex) // every layout has it
	return at
}

// DerivedMaintenance keeps derived tiers up to date. The names are reserved: wsmount has no
// implementation.
type DerivedMaintenance interface {
	// Reindex makes a derived tier anew from Source.
	Reindex(ctx context.Context, t Tier) error
	// ChangedSince are the files that changed in Source after a time, by Info.ModTime.
	ChangedSince(ctx context.Context, modTime time.Time) ([]Locator, error)
}
