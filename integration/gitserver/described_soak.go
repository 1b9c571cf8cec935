//go:build soak

package gitserver

import (
	"sync"

	"github.com/wsmount/wsmount/integration/gitserver/internal/openapi"
	"github.com/wsmount/wsmount/integration/tier"
)

// described reads GitHub's description, which make soak puts below bin, once for all
// tests of a package.
var described = sync.OnceValues(func() (*openapi.Description, error) {
	return openapi.Load(tier.Built("github-api.json"), "basic-error")
})
