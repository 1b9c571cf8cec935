//go:build soak

package azure

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/azureserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// Another program's reading of the service keeps the contract with us. Where it is wrong, a test
// below says so by its name, and fails when a new version is right.
func TestAzurite(t *testing.T) {
	endpoint := azureserver.StartEmulator(t)
	var opened atomic.Int64
	open := func(t *testing.T) *Provider {
		return openFake(t, nil, map[string]string{"endpoint": endpoint, "prefix": fmt.Sprintf("of-%d", opened.Add(1))})
	}
	able := open(t).Capabilities()
	for _, check := range providertest.Checks() {
		if check.Name != "names/odd" && len(able.Missing(check.Needs)) == 0 {
			t.Run(check.Name, func(t *testing.T) { check.Run(t, open(t)) })
		}
	}
	t.Run("index-tags", func(t *testing.T) {
		const tagging = providers.HeaderMetadata + "tagging"
		p := open(t)
		metadata := map[string]string{tagging: "project=one%20two"}
		made := assert.Of(p.Write(t.Context(), loc("a"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent(), Metadata: metadata})).OK(t)
		page := assert.Of(p.List(t.Context(), loc(""), providers.ListOptions{})).OK(t)
		assert.Equal(t, page.Entries[0].Metadata[tagging], metadata[tagging], "a listing tells")
		_, info, err := providers.Fetch(t.Context(), p, loc("a"), providers.ReadOptions{})
		assert.OK(t, err)
		assert.Equal(t, info.Metadata[tagging], metadata[tagging], "a read tells")
		assert.OK(t, assert.ErrOf(p.SetAttr(t.Context(), loc("a"), providers.SetAttrOptions{If: providers.IfVersion(made.Version), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o600}})))
		assert.Equal(t, assert.Of(p.Stat(t.Context(), loc("a"))).OK(t).Metadata[tagging], metadata[tagging], "after chmod")
	})
	t.Run("wrong-names/odd-listing-with-a-control-character-is-500", func(t *testing.T) {
		p := open(t)
		assert.OK(t, assert.ErrOf(p.Write(t.Context(), loc("\x01"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})))
		assert.Is(t, assert.ErrOf(p.List(t.Context(), loc(""), providers.ListOptions{})), providers.ErrUnavailable)
	})
}
