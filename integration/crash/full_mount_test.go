package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

// takeAll has others take all of a disk, also what the ballast held, to the last block.
func (d *disk) takeAll() {
	d.t.Helper()
	_ = os.Remove(filepath.Join(d.Dir, ".shared", "ballast"))
	d.fill(0)
}

// A mount on a disk that others have filled to the last block succeeds beside clean
// content, which goes. Without any it is refused, and says what the disk holds and what
// to free; all other commands answer, too.
func TestMountOnAFullDisk(t *testing.T) {
	t.Parallel()
	if !testrun.Private(t) {
		return
	}
	s := newStage(t, syncAsked)
	for i := range 4 {
		s.tamper(fmt.Sprint("old", i), make([]byte, 3<<20))
	}
	d := newDisk(t, s.w.Path("state"), 30<<20)
	s.w.Own("state", 0o700)
	s.mount()
	mine := filepath.Join(s.m.Dir, "mine")
	assert.OK(t, os.WriteFile(mine, pattern128(), 0o644))
	is := func() {
		t.Helper()
		for i := range 4 {
			b, err := os.ReadFile(fmt.Sprint(s.m.Dir, "/old", i))
			assert.True(t, err == nil && len(b) == 3<<20, "old", i, len(b), "bytes", err)
		}
		b, err := os.ReadFile(mine)
		assert.True(t, err == nil && string(b) == string(pattern128()), "what is unsaved:", len(b), "bytes", err)
	}
	is()
	d.takeAll()
	for _, how := range []struct {
		end    func()
		umount string // says
	}{
		{func() { s.m.Signal(syscall.SIGTERM); s.m.WaitGone() }, "no workspace is mounted at"},
		{s.m.Kill, "1 change stays in the working copy"},
	} {
		how.end()
		r := s.w.Run("umount", "--timeout", "10s", s.m.Dir)
		assert.True(t, strings.Contains(r.Out+r.Err, how.umount), "umount:", r, "want", how.umount)
		d.takeAll()
		r = s.m.TryStart()
		assert.Must(t, r.Code == 0, "beside clean content:", r)
		s.m.PID = s.m.Status().PID
		is()
	}
	s.m.Stop()
	d.free()
	s.w.MustRun("cache", "clear")
	d.takeAll()
	r := s.m.TryStart()
	for _, want := range []string{"state directory " + d.Dir + " is full", " KiB of ", " 0 KiB that are clean, 128 KiB that are unsaved", "`wsmount cache clear`"} {
		assert.True(t, r.Code != 0 && strings.Contains(r.Err, want), "without clean content:", r, "want", want)
	}
	r = s.w.Run("recover")
	assert.True(t, r.Code == 0 && strings.Contains(r.Out, " mine\n"), "recover:", r)
	for _, args := range [][]string{{"status"}, {"cache", "show"}, {"cache", "clear"}} {
		assert.Equal(t, s.w.Run(args...).Code, 0, args)
	}
	d.free()
	s.m.Start()
	is()
}
