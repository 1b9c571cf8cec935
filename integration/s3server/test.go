package s3server

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/wsmount/wsmount/integration/tier"
)

// Default is the kind for a test that needs one server, whichever.
func Default() Kind { return Kinds()[0] }

// Start runs a server with one empty bucket until the test ends.
func Start(t testing.TB, kind Kind) *Server {
	t.Helper()
	s, err := Launch(t.Context(), kind, find(t, kind), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// find is the program, below the directory of the go.mod that we are in.
func find(t testing.TB, kind Kind) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	binary := filepath.Join(filepath.Dir(here), "..", "..", "bin", string(kind))
	_, err := os.Stat(binary)
	tier.Require(t, "bin/"+string(kind), err == nil)
	return binary
}
