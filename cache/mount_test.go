package cache

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// Cases that fail on a mounted working copy, with the reason.
var (
	posixtestLeftOut = map[string]string{
		"FcntlFlockLocksFile": "asks that two record locks of one process exclude each other; POSIX has them merge, and ext4 fails too",
	}
	posixtestSlow = map[string]string{"OpenSymlinkRace": "takes a minute; make soak has it, and the built program runs it on a bucket"}
)

func TestPosixtest(t *testing.T) { // not beside others: it counts the descriptors of the process
	dir, unmount := mount(t, "waits")
	for name, run := range posixtest.All {
		t.Run(name, func(t *testing.T) {
			if reason, out := posixtestLeftOut[name]; out {
				t.Log(reason)
				return
			}
			if reason, slow := posixtestSlow[name]; slow && !tier.Soak {
				t.Log(reason)
				return
			}
			own := filepath.Join(dir, name)
			assert.OK(t, os.Mkdir(own, 0o777))
			run(t, own)
		})
	}
	noProblem(t, unmount())
}

func noProblem(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		tooLarge := strings.Contains(line, "too large for storage") // smallStore
		if strings.HasPrefix(line, "problem:") && !tooLarge {
			t.Error(line)
		}
	}
}

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
