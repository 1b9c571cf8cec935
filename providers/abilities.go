package providers

import (
	"reflect"
	"strings"
)

// Ability is a set of optional interfaces.
type Ability uint16

// The abilities, each named for the interface that it announces.
const (
	AbilityCopy      Ability = 1 << iota // Copier
	AbilityMove                          // Mover
	AbilityAttr                          // AttrSetter
	AbilityParts                         // Multiparter
	AbilityWatch                         // Watcher
	AbilityCommit                        // Committer
	AbilitySnapshot                      // Snapshotter
	AbilityPush                          // Pusher
	AbilitySync                          // Syncer
	AbilityBranch                        // Brancher
	AbilityRebase                        // Rebaser
	AbilityInspect                       // Inspector
	AbilityDiffer                        // Differ
	AbilitySubmodule                     // Submoduler
)

// abilities connects each Ability with its name and interface, in the order of
// the bits.
var abilities = []struct {
	name string
	typ  reflect.Type
}{
	{"copy", reflect.TypeFor[Copier]()},
	{"move", reflect.TypeFor[Mover]()},
	{"attr", reflect.TypeFor[AttrSetter]()},
	{"parts", reflect.TypeFor[Multiparter]()},
	{"watch", reflect.TypeFor[Watcher]()},
	{"commit", reflect.TypeFor[Committer]()},
	{"snapshot", reflect.TypeFor[Snapshotter]()},
	{"push", reflect.TypeFor[Pusher]()},
	{"sync", reflect.TypeFor[Syncer]()},
	{"branch", reflect.TypeFor[Brancher]()},
	{"rebase", reflect.TypeFor[Rebaser]()},
	{"inspect", reflect.TypeFor[Inspector]()},
	{"differ", reflect.TypeFor[Differ]()},
	{"submodule", reflect.TypeFor[Submoduler]()},
}

// Has reports whether all of b is in a.
func (a Ability) Has(b Ability) bool { return a&b == b }

// String lists the members: "copy,move".
func (a Ability) String() string {
	var names []string
	for i, ability := range abilities {
		if a.Has(1 << i) {
			names = append(names, ability.name)
		}
	}
	return strings.Join(names, ",")
}

// As gives the optional interface T of p, which must be one of this package's, if p's
// Capabilities announce it. The result is p itself: a wrapper is never removed, so it also sees
// calls of T.
//
//	if c, ok := providers.As[providers.Copier](p); ok { ... }
func As[T any](p Provider) (T, bool) {
	var none T
	for i, ability := range abilities {
		if ability.typ != reflect.TypeFor[T]() {
			continue
		}
		t, ok := p.(T)
		if !ok || !p.Capabilities().Abilities.Has(1<<i) {
			return none, false
		}
		return t, true
	}
	return none, false
}
