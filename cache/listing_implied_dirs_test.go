package cache

import (
	"context"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// haunted is a provider whose listings show a directory that is not there.
type haunted struct {
	providers.Provider
	ghost providers.Locator
}

func (h *haunted) List(ctx context.Context, l providers.Locator, o providers.ListOptions) (providers.Page, error) {
	page, err := h.Provider.List(ctx, l, o)
	if err == nil && l == h.ghost.Parent() && page.Next == "" {
		page.Entries = append(page.Entries, providers.Info{Locator: h.ghost, Kind: providers.KindDir})
	}
	return page, err
}

// A file that is just being deleted or made may be listed as a directory, and
// does not become one here.
func TestFilesListedAsDirectories(t *testing.T) {
	for _, path := range []string{"gone", "f"} {
		t.Run(path, func(t *testing.T) {
			w := newScene(t, func(w *world, _ *Options) { w.p = memory.New(memory.Options{ImpliedDirs: true}) }, holding("f", "0", "g", "0"))
			w.names("")
			w.gonePath("f")
			w.wrap = func(p providers.Provider) providers.Provider { return &haunted{p, at(path)} }
			w.again()
			w.pull()
			w.tamper("new/f", "0")
			w.pull()
			assert.Slice(t, w.names(""), []string{"g", "new"})
		})
	}
}
