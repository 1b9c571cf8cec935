package tier

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Require skips the test unless a thing is there. Where $WSMOUNT_REQUIRE, a list with
// commas, names the thing or "all", it fails instead: nothing may be missing in CI.
func Require(t testing.TB, what string, there bool) {
	t.Helper()
	if there {
		return
	}
	required := strings.Split(os.Getenv("WSMOUNT_REQUIRE"), ",")
	if slices.Contains(required, what) || slices.Contains(required, "all") {
		t.Fatalf("%s is missing, and $WSMOUNT_REQUIRE asks for it", what)
	}
	t.Skipf("%s is missing", what)
}

// RequireRoot requires root: to act for other users, and to mount.
func RequireRoot(t testing.TB) {
	t.Helper()
	Require(t, "root", os.Geteuid() == 0)
}

// RequireFUSE requires that FUSE file systems can be mounted.
func RequireFUSE(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		_ = f.Close()
	}
	Require(t, "fuse", err == nil)
}

// RequireTools requires programs.
func RequireTools(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := exec.LookPath(name)
		Require(t, name, err == nil)
	}
}
