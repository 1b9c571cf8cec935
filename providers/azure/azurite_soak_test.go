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
	t.Run("wrong-names/odd-listing-with-a-control-character-is-500", func(t *testing.T) {
		p := open(t)
		assert.OK(t, assert.ErrOf(p.Write(t.Context(), loc("\x01"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()})))
		assert.Is(t, assert.ErrOf(p.List(t.Context(), loc(""), providers.ListOptions{})), providers.ErrUnavailable)
	})
}
