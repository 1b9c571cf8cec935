package tree

import (
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// A look at the remote says nothing about names that changed since it began: what we
// changed, and what another look found. What it found itself it knows.
func TestObservations(t *testing.T) {
	a, b, c := link(table.Root, "a"), link(table.Root, "b"), link(10, "c")
	v := newTree(t, Options{}).Lock()
	expect := func(o *Observation, l table.Link, outdated, ours bool) {
		t.Helper()
		got, gotOurs := v.IsOutdated(o, l)
		assert.Equal(t, got, outdated, "outdated:", l.Name)
		assert.Equal(t, gotOurs, ours, "ours:", l.Name)
	}
	v.ChangedByUs(a)
	assert.False(t, v.IsObserved(), "a look is under way")
	first, second := v.Observe(), v.Observe()
	assert.True(t, v.IsObserved(), "no look is under way")
	expect(first, a, false, false) // it was before

	v.ChangedByUs(b)
	v.Found(first, b, c)
	expect(first, b, true, true)
	expect(first, c, false, false)
	expect(second, b, true, true) // and stays so
	expect(second, c, true, false)

	v.Succeed(10, 11) // directory 11 has the place of 10
	expect(second, link(11, "c"), true, false)
	expect(second, link(11, "b"), false, false)

	v.EndObservation(first)
	v.ChangedByUs(a)
	expect(first, a, false, false)
	expect(second, a, true, true)
	v.EndObservation(second)
	assert.False(t, v.IsObserved(), "a look is under way")
}
