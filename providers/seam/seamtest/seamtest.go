// Package seamtest is the contract of a Backend (package seam), as a test suite.
//
// It knows the seam and no backend. Each check gets a new backend and is one sentence
// of the contract:
//
//	func TestSeam(t *testing.T) {
//		seamtest.Run(t, func(t providertest.T) seam.Backend {
//			p := memory.New(memory.Options{})
//			return seamtest.Shared(func() seam.Conditional { return seam.New(p) })
//		})
//	}
//
// The test gives proofs of the promises in the backend's Capabilities (see Proved), or the
// backend does not pass.
//
// The suite is tested too: each of its checks fails on at least one backend that is
// broken on purpose.
package seamtest

import (
	"slices"
	"testing"

	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
)

// New makes an empty backend, whose resources end with t. The suite closes it.
type New func(t providertest.T) seam.Backend

// Check is one sentence of the contract.
type Check struct {
	Name string
	Run  func(t providertest.T, b seam.Backend)
}

// Run holds a backend to the whole contract but for the checks that lacks names: they are for
// features that its storage does not have.
func Run(t *testing.T, new New, lacks ...string) {
	for _, check := range Checks() {
		if !slices.Contains(lacks, check.Name) {
			t.Run(check.Name, func(t *testing.T) { check.run(t, new) })
		}
	}
}

func (c Check) run(t providertest.T, new New) {
	b := new(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c.Run(t, b)
}
