package content

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// loopDisk is an ext4 of its own, mounted at a directory.
type loopDisk struct{ image, dir string }

func newDisk(t *testing.T) *loopDisk {
	t.Helper()
	tier.RequireRoot(t)
	tier.RequireTools(t, "mkfs.ext4")
	d := &loopDisk{filepath.Join(t.TempDir(), "image"), t.TempDir()}
	f, err := os.Create(d.image)
	assert.OK(t, err)
	assert.OK(t, f.Truncate(64<<20))
	f.Close()
	if out, err := exec.Command("mkfs.ext4", "-q", d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v %s", err, out)
	}
	tier.Require(t, "loop devices", d.mount(t))
	t.Cleanup(func() { exec.Command("umount", d.dir).Run() })
	return d
}

func (d *loopDisk) mount(t *testing.T) bool {
	out, err := exec.Command("mount", "-o", "loop", d.image, d.dir).CombinedOutput()
	if err != nil {
		t.Log(strings.TrimSpace(string(out)))
	}
	return err == nil
}

// cut takes the disk's power: what is not on it is lost.
func (d *loopDisk) cut(t *testing.T) {
	t.Helper()
	const shutdown, noLogFlush = 0x8004587d, uint32(2)
	dir, err := os.Open(d.dir)
	assert.OK(t, err)
	flags := noLogFlush
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), shutdown, uintptr(unsafe.Pointer(&flags)))
	dir.Close()
	if errno != 0 {
		t.Fatalf("shut the file system down: %v", errno)
	}
	if out, err := exec.Command("umount", d.dir).CombinedOutput(); err != nil {
		t.Fatalf("umount: %v %s", err, out)
	}
	if !d.mount(t) {
		t.Fatal("the disk does not mount again")
	}
}

// TestPowerLoss changes and syncs files, goes on fetching without a sync, and
// loses power. What was synced is there after the next boot, and no block that
// was lost counts as present.
func TestPowerLoss(t *testing.T) {
	d := newDisk(t)
	r := rand.New(rand.NewSource(1))
	base := pattern(30*4096+77, 1)
	b := &backend{data: base}
	o := Options{Block: 4096, Floor: -1, Ballast: -1}
	type file struct {
		want   []byte
		synced bool
	}
	files := make(map[uint64]*file)
	for cut := range 3 {
		o.boot = fmt.Sprint("boot ", cut)
		s, err := Open(d.dir, o)
		assert.OK(t, err)
		for ino := uint64(1); ino <= 12; ino++ {
			f, err := s.Open(ino)
			if w := files[ino]; w != nil && w.synced {
				assert.OK(t, err)
			} else {
				if err == nil {
					f.Release()
				}
				size := len(base)
				if ino%3 == 0 {
					size = 3000 // one block
				}
				f, err = s.Sparse(ino, "", int64(size), digestOf(base[:size]))
				assert.OK(t, err)
				files[ino] = &file{want: slices.Clone(base[:size])}
			}
			w := files[ino]
			f.SetSource(b.source)
			wantSome(t, f, w.want, r.Intn(2) == 0)
			for range r.Intn(4) {
				off, p := r.Intn(len(w.want)), pattern(1+r.Intn(9000), byte(r.Intn(256)))
				p = p[:min(len(p), len(w.want)-off)]
				write(t, f, p, int64(off))
				copy(w.want[off:], p)
				if r.Intn(3) == 0 {
					assert.OK(t, f.FetchAll(t.Context()))
				}
			}
			assert.OK(t, f.Sync())
			if r.Intn(2) == 0 {
				assert.OK(t, f.Fetch(t.Context(), int64(r.Intn(len(base))), 20000))
			}
			if r.Intn(3) == 0 {
				assert.OK(t, f.FetchAll(t.Context()))
			}
			if m, err := os.OpenFile(filepath.Join(d.dir, "map", nameOf(ino)), os.O_RDWR, 0); err == nil {
				if ino%2 == 0 {
					assert.OK(t, m.Sync()) // the disk may write a mark before the bytes
				}
				m.Close()
			}
			_, err = os.Stat(filepath.Join(d.dir, "data/00", nameOf(ino)))
			w.synced = err == nil && f.Writes() > 0 || w.synced
			f.Release()
		}
		assert.OK(t, s.Close())
		d.cut(t)
	}
	o.boot = "last"
	s, err := Open(d.dir, o)
	assert.OK(t, err)
	defer s.Close()
	checked := 0
	for ino, w := range files {
		if !w.synced {
			continue
		}
		f, err := s.Open(ino)
		assert.OK(t, err)
		f.SetSource(b.source)
		wantBytes(t, f, w.want)
		f.Release()
		checked++
	}
	if checked < 6 {
		t.Errorf("only %d files had anything synced", checked)
	}
}

// wantSome is wantBytes, of all or of the first page.
func wantSome(t *testing.T, f *File, want []byte, all bool) {
	t.Helper()
	if all {
		wantBytes(t, f, want)
		return
	}
	got := make([]byte, 1000)
	if _, err := f.ReadAt(t.Context(), got, 0); err != nil || string(got) != string(want[:1000]) {
		t.Fatalf("the first page differs, %v", err)
	}
}
