package tier

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// DirtyPages is how many pages of a file nobody has begun to write to the disk.
func DirtyPages(t testing.TB, path string) uint64 {
	t.Helper()
	f, err := os.Open(path)
	assert.OK(t, err)
	defer f.Close()
	var pages unix.Cachestat_t
	err = unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &pages, 0)
	Require(t, "a kernel that counts dirty pages", err != unix.ENOSYS)
	assert.OK(t, err)
	return pages.Dirty
}

// OnDisk checks that a loss of power takes nothing of the content of a file that was just
// written, on a file system that writes behind.
func OnDisk(t testing.TB, path string) {
	t.Helper()
	assert.Equal(t, DirtyPages(t, path), 0, path, "pages that a loss of power takes")
}

// Dirty has a file written, whose path write returns, until it has dirty pages: each time,
// a sync(2) of somebody else may come first.
func Dirty(t testing.TB, write func() string) {
	t.Helper()
	for range 1000 {
		if DirtyPages(t, write()) > 0 {
			return
		}
	}
	Require(t, "a file system that writes behind", false)
}
