package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A full disk is told to who writes, at the write and not at the close. What
// was written before stays, names can be removed, and all goes on when there is
// room again.
func TestFullDisk(t *testing.T) {
	if !harness.Private(t) {
		return
	}
	s := newStage(t, syncAsked)
	d := newDisk(t, s.w.Path("state"), 256<<20)
	s.w.Own("state", 0o700)
	s.mount()
	kept := filepath.Join(s.m.Dir, "kept")
	if err := os.WriteFile(kept, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := os.WriteFile(fmt.Sprint(s.m.Dir, "/old", i), make([]byte, 100_000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.fill(8 << 20)
	wrote := s.writeUntilFull()
	t.Logf("%d KiB could be written", wrote>>10)
	for i := range 20 {
		if err := os.Remove(fmt.Sprint(s.m.Dir, "/old", i)); err != nil {
			t.Errorf("a removal on a full disk: %v", err)
		}
	}
	if b, err := os.ReadFile(kept); err != nil || string(b) != "before" {
		t.Errorf("what was there before: %q, %v", b, err)
	}
	d.free()
	harness.Eventually(t, 20*time.Second, "there is room again", func() bool {
		err := os.WriteFile(filepath.Join(s.m.Dir, "after"), make([]byte, 1<<20), 0o644)
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		return err == nil
	})
	s.w.MustRun("commit", "--confirm", s.m.Dir)
	s.settle()
	s.converged()
	if fi, err := os.Stat(filepath.Join(s.m.Dir, "big")); err != nil || fi.Size() < wrote {
		t.Errorf("of %d bytes that were taken %v are there: %v", wrote, fi, err)
	}
}

// writeUntilFull writes to a file until there is no room, and says how much was
// taken.
func (s *stage) writeUntilFull() (taken int64) {
	s.t.Helper()
	f, err := os.Create(filepath.Join(s.m.Dir, "big"))
	if err != nil {
		s.t.Fatal(err)
	}
	block := make([]byte, 128<<10)
	for i := range block {
		block[i] = byte(i + 1)
	}
	for err == nil && taken < 1<<30 {
		var n int
		n, err = f.Write(block)
		taken += int64(n)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.t.Errorf("a write to a full disk: %v after %d bytes, want ENOSPC", err, taken)
	}
	if err := f.Close(); err != nil {
		s.t.Errorf("the close behind a write that failed: %v", err)
	}
	return taken
}
