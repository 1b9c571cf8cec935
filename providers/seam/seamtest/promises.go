package seamtest

import (
	"errors"
	"strings"
	"sync"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
	"github.com/wsmount/wsmount/providers/seam"
)

// Proved is a backend with proofs of its capabilities. A backend that promises something without
// a proof does not keep the contract.
type Proved struct {
	seam.Conditional
	Proof
}

// Proof reaches the storage of a backend past it. A nil field proves nothing.
type Proof struct {
	Again func() seam.Conditional    // opens it once more, as another process does; the suite closes it
	Put   func(key, content string)  // puts a file into it, as a replication does
	Raw   func() (everything []byte) // the bytes on its disks
}

func (p Proof) proof() Proof { return p }

// Shared is the backend that open opens, proved by opening it again.
func Shared(open func() seam.Conditional) Proved { return Proved{open(), Proof{Again: open}} }

// prove runs a check with the proof of a backend that promises something.
func prove(t providertest.T, b seam.Backend, promised bool, check func(seam.Conditional, Proof) (proved bool)) {
	if !promised {
		return
	}
	c, conditional := b.(interface {
		seam.Conditional
		proof() Proof
	})
	if !conditional || !check(c, c.proof()) {
		t.Errorf("it promises %v, and the test has nothing to prove it by", b.Capabilities())
	}
}

// promisesWriters: of several processes that count in one file, each is counted, and every read
// meanwhile returns one of the counts.
func promisesWriters(t providertest.T, b seam.Backend) {
	prove(t, b, b.Capabilities().ConcurrentWriters, func(c seam.Conditional, p Proof) bool {
		if p.Again == nil {
			return false
		}
		const others, each = 3, 16
		all := []seam.Conditional{c}
		for range others {
			other := p.Again()
			t.Cleanup(func() {
				if err := other.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			all = append(all, other)
		}
		l := at(t, b, "d", "count")
		var writers sync.WaitGroup
		for _, w := range all {
			writers.Go(func() {
				for range each {
					if err := seam.Update(t.Context(), w, l, func(text string, _ bool) (string, bool, error) { return text + "x", true, nil }); err != nil {
						t.Errorf("count: %v", err)
					}
				}
			})
		}
		writers.Wait()
		for _, w := range all {
			holds(t, w, l, strings.Repeat("x", len(all)*each))
		}
		return true
	})
}

// promisesCopies: a copy that a sync layer made of a conflict is a file like any other, which
// stays when the original is written.
func promisesCopies(t providertest.T, b seam.Backend) {
	prove(t, b, b.Capabilities().ConflictFiles, func(c seam.Conditional, p Proof) bool {
		if p.Put == nil {
			return false
		}
		write(t, c, at(t, b, "d", "plan.md"), "ours")
		const copied = "d/plan (conflicted copy).md"
		p.Put(copied, "theirs")
		write(t, c, at(t, b, "d", "plan.md"), "ours again")
		lists(t, c, at(t, b, "d"), copied, "d/plan.md")
		holds(t, c, at(t, b, copied), "theirs")
		return true
	})
}

// promisesSync: a file from a replication is visible at once, and no write with a condition takes
// it for the content before.
func promisesSync(t providertest.T, b seam.Backend) {
	prove(t, b, b.Capabilities().Sync, func(c seam.Conditional, p Proof) bool {
		if p.Put == nil {
			return false
		}
		l := at(t, b, "plan.md")
		write(t, c, l, "ours")
		p.Put(l.Key(), "theirs")
		holds(t, c, l, "theirs")
		if _, err := c.WriteIf(t.Context(), l, seam.ETagOf("ours"), "ours again"); !errors.Is(err, providers.ErrConflict) {
			t.Errorf("write over what a replication brought: %v", err)
		}
		holds(t, c, l, "theirs")
		return true
	})
}

// promisesEncryption: written content cannot be read from the storage.
func promisesEncryption(t providertest.T, b seam.Backend) {
	prove(t, b, b.Capabilities().Encryption, func(c seam.Conditional, p Proof) bool {
		if p.Raw == nil {
			return false
		}
		const secret = "a sentence that is in no other file"
		write(t, c, at(t, b, "plan.md"), secret)
		assert.False(t, strings.Contains(string(p.Raw()), secret), "the storage has the text itself")
		return true
	})
}
