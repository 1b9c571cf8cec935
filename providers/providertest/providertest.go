// Package providertest is the contract of package providers as a test suite.
//
// It knows the contract and no provider. Run tests a provider against it, as it is and made
// read-only. Checks of abilities that a provider does not promise in its Capabilities are left
// out.
//
//	func TestContract(t *testing.T) {
//		providertest.Run(t, func(t providertest.T) providers.Provider {
//			return memory.New(memory.Options{})
//		})
//	}
//
// RunWrapped is Run for the one provider that is also tested inside wrappers, and RunVariant
// for one that differs little from a provider for which Run has run. In make soak all three run
// everything.
//
// Faults is the injector, for tests of code that uses providers. The suite is
// tested too: each of its checks fails on at least one provider that is broken
// on purpose.
package providertest

import (
	"context"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
)

// T is the part of *testing.T that checks use. It is an interface so that the suite can be run
// against broken providers, and its failures read.
type T interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	TempDir() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// New makes an empty provider, whose resources end with t.
type New func(t T) providers.Provider

// Check is one sentence of the contract.
type Check struct {
	Name  string
	Needs providers.Capabilities // the check makes sense only with these
	Heavy bool                   // many calls or much content, which RunVariant leaves to make soak
	Run   func(t T, p providers.Provider)
}

// Checks are all checks of a provider that may be changed.
func Checks() []Check {
	var all []Check
	for _, group := range [][]Check{
		contentChecks, readChecks, nameChecks, treeChecks, listChecks, versionChecks, conditionChecks,
		attrChecks, abilityChecks, partsChecks, commitChecks, changeSetChecks, concurrencyChecks, endChecks, modelChecks,
	} {
		all = append(all, group...)
	}
	return all
}

// Run tests a provider against the whole contract; each check gets a new provider.
func Run(t *testing.T, new New) {
	if tier.Soak {
		RunWrapped(t, new)
		return
	}
	runBare(t, new, func(Check) bool { return true })
}

// RunVariant is Run without the heavy checks: for a provider that differs only in options or in
// the wire from one for which Run has run.
func RunVariant(t *testing.T, new New) {
	if tier.Soak {
		RunWrapped(t, new)
		return
	}
	runBare(t, new, func(c Check) bool { return !c.Heavy })
}

func runBare(t *testing.T, new New, wanted func(Check) bool) {
	for _, checks := range [][]Check{Checks(), plainChecks, faultChecks, readOnlyChecks} {
		runAll(t, slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return !wanted(c) }), new)
	}
}

// RunWrapped is Run, and the contract again with the provider inside a wrapper and inside one
// that injects faults. The behaviour of these does not depend on the provider, so in make test
// only one provider runs it.
func RunWrapped(t *testing.T, new New) {
	t.Run("plain", func(t *testing.T) { runAll(t, append(Checks(), plainChecks...), new) })
	t.Run("wrapped", func(t *testing.T) {
		runAll(t, Checks(), func(t T) providers.Provider {
			return providers.Wrap(new(t), providers.WrapOptions{})
		})
	})
	t.Run("faulty", func(t *testing.T) {
		runAll(t, Checks(), func(t T) providers.Provider { return NewFaults(t).Wrap(new(t)) })
		runAll(t, faultChecks, new)
	})
	t.Run("readonly", func(t *testing.T) { runAll(t, readOnlyChecks, new) })
}

func runAll(t *testing.T, checks []Check, new New) {
	p := new(t)
	able := p.Capabilities() // all new providers have the same capabilities
	if err := p.Close(); err != nil {
		t.Fatalf("close of an unused provider: %v", err)
	}
	for _, check := range checks {
		if len(able.Missing(check.Needs)) == 0 {
			t.Run(check.Name, func(t *testing.T) { check.run(t, new) })
		}
	}
}

func (c Check) run(t T, new New) {
	p := new(t)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c.Run(t, p)
}
