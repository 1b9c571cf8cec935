package gitserver

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if strings.Contains(os.Getenv("WSMOUNT_REQUIRE"), "all") {
			t.Fatalf("the program git is missing, and $WSMOUNT_REQUIRE asks for it")
		}
		t.Skip("the program git is missing: make test installs it")
	}
	s, err := Launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}
