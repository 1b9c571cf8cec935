//go:build soak

package cache

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/posix"
)

// The whole suite on a working copy alone. In make test the built program runs it on
// working copies of a bucket and of a repository.
func TestPosix(t *testing.T) {
	t.Parallel()
	dir, unmount := mount(t, "waits")
	assert.OK(t, os.Chmod(dir, 0o777))
	posix.Run(t, dir, posix.Options{})
	noProblem(t, unmount())
}

// An ordinary user, on a mount that does not wait for the backend. What programs see
// does not depend on the policy, and users of mounts of the built program are in make
// test, so this is in make soak.
func TestPosixUser(t *testing.T) {
	t.Parallel()
	dir, unmount := mount(t, "gathers")
	assert.OK(t, os.Chmod(dir, 0o777))
	posix.RunAs(t, dir, 65533, posix.Options{Without: posix.Long})
	noProblem(t, unmount())
}

func TestPosixChild(t *testing.T) { posix.Child(t) }

func noProblem(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		tooLarge := strings.Contains(line, "too large for storage") // smallStore
		if strings.HasPrefix(line, "problem:") && !tooLarge {
			t.Error(line)
		}
	}
}
