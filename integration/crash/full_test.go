package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/testrun"
)

// newSmallStage is a mount whose state is on a disk of its own that is soon full.
func newSmallStage(t *testing.T) (*stage, *disk) {
	t.Helper()
	s := newStage(t, syncAsked)
	d := newDisk(t, s.w.Path("state"), 256<<20)
	s.w.Own("state", 0o700)
	s.mount()
	return s, d
}

// A full disk is told to who writes, at the write and not at the close. What
// was written before stays, and can be read also where it gave way, names can be
// removed, and all goes on when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t) {
		return
	}
	s, d := newSmallStage(t)
	kept := filepath.Join(s.m.Dir, "kept")
	assert.OK(t, os.WriteFile(kept, []byte("before"), 0o644))
	for i := range 20 {
		assert.OK(t, os.WriteFile(fmt.Sprint(s.m.Dir, "/old", i), make([]byte, 100_000), 0o644))
	}
	for i := range 20 { // else it is too much that goes in the end
		assert.OK(t, os.WriteFile(fmt.Sprint(s.m.Dir, "/stays", i), nil, 0o644))
	}
	s.w.MustRun("commit", s.m.Dir)
	d.fill(8 << 20)
	wrote := s.writeUntilFull()
	t.Logf("%d KiB could be written", wrote>>10)
	d.fill(0)
	for i := range 20 {
		b, err := os.ReadFile(fmt.Sprint(s.m.Dir, "/old", i))
		assert.True(t, err == nil && len(b) == 100_000, "old", i, "on a full disk:", len(b), "bytes", err)
	}
	for i := range 20 {
		assert.Is(t, os.Remove(fmt.Sprint(s.m.Dir, "/old", i)), nil, "a removal on a full disk")
	}
	b, err := os.ReadFile(kept)
	assert.True(t, err == nil && string(b) == "before", "what was there before:", b, err)
	d.free()
	harness.Eventually(t, "there is room again", func() bool {
		err := os.WriteFile(filepath.Join(s.m.Dir, "after"), make([]byte, 1<<20), 0o644)
		assert.Must(t, err == nil || errors.Is(err, syscall.ENOSPC), err)
		return err == nil
	})
	s.w.MustRun("commit", "--confirm", s.m.Dir)
	s.settle()
	s.converged()
	fi, err := os.Stat(filepath.Join(s.m.Dir, "big"))
	assert.True(t, err == nil && fi.Size() >= wrote, "of", wrote, "bytes that were taken", fi, "are there:", err)
}

// writeUntilFull writes to a file until there is no room, and says how much was
// taken.
func (s *stage) writeUntilFull() (taken int64) {
	s.t.Helper()
	f, err := os.Create(filepath.Join(s.m.Dir, "big"))
	assert.OK(s.t, err)
	block := pattern128()
	for err == nil && taken < 1<<30 {
		var n int
		n, err = f.Write(block)
		taken += int64(n)
	}
	assert.Is(s.t, err, syscall.ENOSPC, "a write to a full disk, after", taken, "bytes")
	assert.Is(s.t, f.Close(), nil, "the close behind a write that failed")
	return taken
}

// pattern128 is 128 KiB that are other ones at each place.
func pattern128() []byte {
	block := make([]byte, 128<<10)
	for i := range block {
		block[i] = byte(i + 1)
	}
	return block
}

// Who removes something from a full disk has the room of the ballast, also when
// nothing was written since the start. When that is used up too, a change of names
// fails, and then it has not happened: not now, and not when there is room again.
func TestNamesOnAFullDisk(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t) {
		return
	}
	s, d := newSmallStage(t)
	at := func(name string) string { return filepath.Join(s.m.Dir, name) }
	for _, name := range []string{"a", "removed"} {
		assert.OK(t, os.WriteFile(at(name), []byte(name), 0o644))
	}
	s.m.Kill()
	s.m.Start()
	d.fill(0)
	assert.OK(t, os.Remove(at("removed")), "a removal on a full disk with a ballast")
	d.fill(0)
	from, to, err := "a", "b", error(nil)
	for range 200_000 {
		if err = os.Rename(at(from), at(to)); err != nil {
			break
		}
		from, to = to, from
	}
	assert.Must(t, errors.Is(err, syscall.ENOSPC), "names change on a full disk without end:", err)
	is := func(when string) {
		t.Helper()
		names, err := os.ReadDir(s.m.Dir)
		assert.True(t, err == nil && len(names) == 1 && names[0].Name() == from, when, "the names are", names, err, "want", from, "of which a rename to", to, "has failed")
	}
	is("on the full disk")
	s.m.Kill()
	r := s.w.Run("umount", s.m.Dir)
	assert.False(t, r.Code != 0 && r.Code != 7, "umount of what was killed, on a full disk:", r)
	switch r := s.m.TryStart(); {
	case r.Code == 0: // in the room that was set aside before
		s.m.PID = s.m.Status().PID
		is("mounted on the full disk")
		s.m.Kill()
	case !strings.Contains(r.Err, "no space left"):
		t.Errorf("a mount on a full disk: %+v", r)
	}
	d.free()
	s.m.Start()
	harness.Eventually(t, "there is room again", func() bool { return os.WriteFile(at("more"), nil, 0o644) == nil })
	assert.Is(t, os.Remove(at("more")), nil)
	is("with room again")
	s.m.Kill()
	s.m.Start()
	is("after a kill")
	s.w.MustRun("commit", "--confirm", s.m.Dir)
	s.settle()
	s.converged()
}
