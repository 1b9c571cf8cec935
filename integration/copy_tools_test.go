package integration

import (
	"testing"

	"github.com/wsmount/wsmount/integration/tier"
)

// Inside a working copy the tools find what they find on the disk: where each
// close waits for the store, and where changes are committed and pushed behind
// the tools' back. The second gets those that take long, the longest in make soak only:
// in make test they work in a local mount.
func TestCopyTools(t *testing.T) {
	t.Parallel()
	slow := map[string]bool{"git": true, "go build": true, "npm": true}
	short := map[string]bool{"find, grep and friends": true, "sqlite with a write-ahead log": true, "ripgrep": true, "rsync there and back": true}
	looks := map[string]bool{"ripgrep": true, "find, grep and friends": true} // they change little
	for _, f := range []copyFlavour{canonicalStore, repository} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // it waits for a disk or a server, mostly
			for _, tl := range tools {
				if slow[tl.name] && (f.name == canonicalStore.name || !tier.Soak && tl.name != "git") || short[tl.name] && f.name == repository.name {
					continue
				}
				if !tier.Soak && f.name == canonicalStore.name && looks[tl.name] {
					continue
				}
				t.Run(tl.name, func(t *testing.T) {
					t.Parallel()
					tier.RequireTools(t, tl.needs...)
					c := f.mount(t)
					c.fill() // a tool that cleans up removes less than half of all
					compareTool(t, tl, c.Dir)
				})
			}
		})
	}
}
