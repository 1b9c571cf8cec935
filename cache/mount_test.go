package cache

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// What programs did in the mount is at the backend after the unmount, also
// what they wrote through mappings.
func TestMountReachesTheBackend(t *testing.T) {
	dir, unmount := mount(t, "waits")
	ok := func(err error) {
		t.Helper()
		assert.OK(t, err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	ok(os.Mkdir(in("d"), 0o755))
	ok(os.WriteFile(in("d/tmp"), []byte("saved"), 0o644))
	ok(os.Rename(in("d/tmp"), in("d/f")))
	ok(os.Symlink("d/f", in("l")))
	ok(os.Link(in("d/f"), in("g")))
	ok(os.Rename(in("d"), in("e")))
	ok(os.WriteFile(in("m"), []byte("mapped"), 0o644))
	f, err := os.OpenFile(in("m"), os.O_RDWR, 0)
	ok(err)
	m, err := unix.Mmap(int(f.Fd()), 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	ok(err)
	ok(f.Close())
	m[0] = 'M' // after the last close
	ok(unix.Munmap(m))
	d, err := os.Open(in("e"))
	ok(err)
	ok(d.Sync()) // all names are at the backend
	ok(d.Close())
	state := make([]byte, 20)
	n, err := unix.Getxattr(in("e/f"), "user.wsmount.state", state)
	if ok(err); string(state[:n]) != "clean" {
		t.Errorf("state %q", state[:n])
	}
	got := strings.Join(unmount(), "\n")
	assert.Equal(t, got, "e/\ne/f: saved\ng: saved\nl -> d/f\nm: Mapped", "the backend has")
}
