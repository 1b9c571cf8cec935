//go:build soak

package gitserver

import (
	"path/filepath"
	"runtime"
	"sync"

	"github.com/wsmount/wsmount/integration/gitserver/internal/openapi"
)

// described reads GitHub's description, which make soak puts below bin, once for all
// tests of a package.
var described = sync.OnceValues(func() (*openapi.Description, error) {
	_, here, _, _ := runtime.Caller(0)
	return openapi.Load(filepath.Join(filepath.Dir(here), "..", "..", "bin", "github-api.json"), "basic-error")
})
