package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A pull that deletes too much halts, and changes nothing until a person has confirmed it; unless what it deletes
// is kept where it was.
func TestHalt(t *testing.T) {
	many := func(n int, dir string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("%s%02d", dir, i), "x")
		}
		return all
	}
	gone := func(n int) (script []string) {
		for i := range n {
			script = append(script, fmt.Sprintf("rm %02d", i))
		}
		return script
	}
	for what, c := range map[string]struct {
		start, there []string
		reason       string // "": no halt
	}{
		"half":           {start: many(24, ""), there: gone(12)},
		"more than half": {start: many(24, ""), there: gone(13), reason: "13 of 24 entries"},
		"a directory with so much that it is counted first": {start: append(many(1000, "d/"), many(8, "")...), there: append(gone(2), "rm d"), reason: "1003 of 1009 entries"},
		"the root": {start: many(3, ""), there: gone(3), reason: "all 3 entries of the root"},
	} {
		for _, d := range []revision.Deletions{revision.Gone, revision.Kept} {
			kept := d == revision.Kept
			t.Run(fmt.Sprint(what, ", kept ", kept), func(t *testing.T) {
				w := newCopy(t, memory.Options{}, reconcile.Split, c.start...)
				names := func() string {
					all := w.linesBelow("", table.Root, false)
					slices.Sort(all)
					return strings.Join(all, " ")
				}
				before := names()
				w.theirs(c.there...)
				r, err := w.tryPull(d)
				if c.reason != "" && !kept {
					assert.Is(t, err, massdelete.ErrHalted)
					assert.Contains(t, err.Error(), c.reason)
					assert.Equal(t, names(), before, "local is")
					w.o.Guard.Halts(nil).Confirm()
					r, err = w.tryPull(d)
				}
				w.ok(err)
				assert.AtLeast(t, r.Deleted, len(c.there), "deleted")
				assert.False(t, names() == before, "nothing was deleted")
				assert.False(t, kept && w.o.Guard.Halts(nil).IsConfirmed(massdelete.Pull), "what comes next may delete too")
				w.sendable()
			})
		}
	}
}

// A listing of which a later page is not there is not the whole directory.
func TestCountInABrokenListing(t *testing.T) {
	w := newCopy(t, memory.Options{PageSize: 3}, reconcile.Manual, "f", "1")
	for i := range 9 {
		w.theirs(fmt.Sprintf("put d/%d x", i))
	}
	pages := 0
	w.calls = func(c *providers.Call) error {
		if c.Method == providers.MethodList {
			if pages++; pages == 2 {
				return providers.ErrNotExist
			}
		}
		return nil
	}
	w.o.Volume.Retry = func(ctx context.Context, do func(context.Context) error) error {
		if do(ctx) == nil {
			t.Error("a listing that was broken off is taken for the whole")
		}
		return do(ctx)
	}
	i := newInquiry(t.Context(), w.Merger, w.o.Provider)
	n, _, err := i.countIn(at("d"))
	assert.True(t, n == 9 && err == nil, "counted in the next attempt", n, err)
}

// brokenOff is a remote whose listings break off once, after their first page.
type brokenOff struct {
	providers.Provider
	broken bool
}

func (p *brokenOff) List(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
	if o.Token != "" && !p.broken {
		p.broken = true
		return providers.Page{}, providers.Fail("test", providers.MethodList, l, providers.ErrNotExist, providers.ErrUnavailable)
	}
	return p.Provider.List(ctx, l, o)
}

// A listing that breaks off is not the whole directory: it is counted anew, or not at all.
func TestCountOfABrokenListing(t *testing.T) {
	c := newCopy(t, memory.Options{PageSize: 3}, reconcile.Split)
	for i := range 9 {
		c.theirs(fmt.Sprintf("put d/%d x", i))
	}
	remote := &brokenOff{Provider: c.o.Provider}
	i := newInquiry(t.Context(), c.Merger, remote)
	count, _, err := i.countIn(at("d"))
	assert.True(t, remote.broken && (count == 9 || err != nil), "counted", count, err)
}

// A text that is too large to be merged is not read on.
func TestTextThatIsTooLarge(t *testing.T) {
	text, err := readText(strings.NewReader(strings.Repeat("x", reconcile.MostText)))
	assert.True(t, err == nil && len(text) == reconcile.MostText, "a text of the largest size", len(text), err)
	large := strings.NewReader(strings.Repeat("x", reconcile.MostText+100))
	text, err = readText(large)
	assert.True(t, err == nil && text == nil, "a larger one", len(text), err)
	assert.AtLeast(t, large.Len(), 99, "bytes that were not read")
}
