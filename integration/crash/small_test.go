package crash

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
)

// On a disk that is smaller than what is read and written, clean content makes room
// for all that needs it, whoever filled the disk. What was taken from a program is
// kept, and the unmount, recover and the next mount come to an end: if they cannot do
// their work, they say what to free.
func TestSmallDisk(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t) {
		return
	}
	for _, size := range tier.Pick([]int64{30 << 20}, []int64{30 << 20, 100 << 20, 400 << 20}) {
		t.Run(fmt.Sprint(size>>20, " MiB"), func(t *testing.T) { testSmallDisk(t, size) })
	}
}

func testSmallDisk(t *testing.T, size int64) {
	s := newStage(t, syncAsked)
	old := size / 10 * 3
	for i := range 4 {
		assert.OK(t, s.far.put(map[string][]byte{fmt.Sprint("old", i): make([]byte, old)}))
	}
	d := newDisk(t, s.w.Path("state"), size)
	s.w.Own("state", 0o700)
	s.mount()
	read := func(when string) {
		t.Helper()
		for i := range 4 {
			f, err := os.Open(filepath.Join(s.m.Dir, fmt.Sprint("old", i)))
			if err != nil {
				t.Errorf("%s: %v", when, err)
				continue
			}
			assert.Of(io.Copy(io.Discard, f)).Equal(t, old, when, "old", i, "bytes")
			f.Close()
		}
	}
	read("at first")
	readThrough(t, s, size+size/4)
	d.fill(0)
	read("filled by others beside clean content")
	d.free()
	wrote := s.writeUntilFull()
	if wrote < size/2 {
		t.Errorf("only %d KiB could be written\n%s", wrote>>10, s.problems())
	}
	read("filled by us")
	d.fill(0)
	read("filled by us and others")
	d.fill(0)
	read("filled by others once more")
	for i := range 1200 { // more than there is room for in what the files of the table have kept
		f, err := os.Open(filepath.Join(s.m.Dir, fmt.Sprint("old", i%4)))
		if err != nil {
			t.Errorf("filled by others, open %d: %v", i, err)
			break
		}
		f.Close()
	}
	err := os.WriteFile(filepath.Join(s.m.Dir, "x"), []byte("x"), 0o644)
	assert.False(t, err != nil && !errors.Is(err, syscall.ENOSPC), err)
	is := func(when string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(s.m.Dir, "big"))
		want := bytes.Repeat(pattern128(), int(wrote>>17)+1)[:wrote]
		assert.True(t, err == nil && bytes.Equal(b, want), when, "of", wrote, "bytes that were taken", len(b), "are there, or are others:", err)
	}
	is("on the full disk")
	s.w.MustRun("cache", "show")
	r := s.w.Run("umount", "--timeout", "10s", s.m.Dir)
	assert.False(t, r.Code != 0 && r.Code != 7, "umount:", r)
	_ = os.Remove(filepath.Join(d.Dir, ".shared/ballast"))
	d.fill(0)
	s.w.MustRun("cache", "clear")
	r = s.w.Run("recover")
	assert.True(t, r.Code == 0 && strings.Contains(r.Out, " big\n"), "recover:", r)
	switch r := s.m.TryStart(); {
	case r.Code == 0:
		is("mounted on the full disk")
		s.w.Run("umount", s.m.Dir)
	case !strings.Contains(r.Err, "cache clear"):
		t.Errorf("a mount on a full disk says nothing of what to free: %+v", r)
	}
	d.free()
	s.m.Start()
	is("with room again")
}

// readThrough reads a file that the disk has no room for.
func readThrough(t *testing.T, s *stage, size int64) {
	t.Helper()
	s.tamper("huge", make([]byte, size))
	s.w.MustRun("pull", s.m.Dir)
	f := assert.Of(os.Open(filepath.Join(s.m.Dir, "huge"))).OK(t)
	defer f.Close()
	assert.Of(io.Copy(io.Discard, f)).Equal(t, size, "bytes of a file larger than the disk")
}
