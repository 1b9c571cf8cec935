package tier

import (
	"os"
	"os/exec"
	"path/filepath"
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

// Built is where make puts what it builds or fetches for tests, by its name below bin. It is
// looked for from where the program began, which for a test is its package's directory, and
// not beside this source: where that lies is not in a program that is built with -trimpath,
// so that the compiler's cache serves each clone.
func Built(name string) string {
	for dir := began; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			return filepath.Join(dir, "bin", name)
		}
	}
}

var began, _ = os.Getwd()

// RequireBuilt requires what make builds for tests, as Require does, and tells where it is.
func RequireBuilt(t testing.TB, name string) (path string) {
	t.Helper()
	path = Built(name)
	_, err := os.Stat(path)
	Require(t, "bin/"+name, err == nil)
	return path
}
