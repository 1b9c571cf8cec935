package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// fixedTime is a time stamp that no clock gives.
var fixedTime = time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)

func itoa(n int) string { return strconv.Itoa(n) }

// contains says whether a text has all of some parts.
func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	return string(assert.Of(os.ReadFile(name)).OK(t))
}

// family registers workspaces @acme/<name>, each with a file "from" that holds
// its name, and returns their directories.
func family(t *testing.T, w *harness.World, names ...string) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for _, name := range names {
		dirs[name] = w.Workspace("@acme/"+name, "watch")
		w.MustRun("registry", "add", dirs[name])
		write(t, dirs[name]+"/from", name)
	}
	return dirs
}

func write(t *testing.T, path, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, []byte(text), 0o644))
}

func mkdirAll(t *testing.T, path string) {
	t.Helper()
	assert.OK(t, os.MkdirAll(path, 0o755))
}

func checkContent(t *testing.T, path, want string) {
	t.Helper()
	assert.Of(os.ReadFile(path)).Equal(t, []byte(want), filepath.Base(path))
}

// checkErr checks that a call ended with an errno; nil is success.
func checkErr(t *testing.T, what string, got, want error) {
	t.Helper()
	assert.Is(t, got, want, what)
}

func tryOpen(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}
