package posix_test

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/posix"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

// userID is an ordinary user that owns nothing.
const userID = 65533

// The local file system is the reference: every case passes there.
func TestPosix(t *testing.T) { posix.Run(t, openDir(t), posix.Options{}) }

func TestPosixUser(t *testing.T) {
	tier.RequireRoot(t) // this is an ordinary user already
	posix.RunAs(t, openDir(t), userID, posix.Options{})
}

func TestPosixChild(t *testing.T) { posix.Child(t) }

// openDir is a directory of the disk that everyone can pass and write to.
// POSIX_SUITE_DIR chooses one that exists: a mount, for instance.
func openDir(t *testing.T) string {
	t.Helper()
	dir := assert.Of(os.MkdirTemp(os.Getenv("POSIX_SUITE_DIR"), "posix")).OK(t)
	t.Cleanup(func() {
		assert.Is(t, os.RemoveAll(dir), nil)
	})
	assert.OK(t, os.Chmod(dir, 0o777))
	return dir
}
