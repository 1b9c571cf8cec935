package fs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestFailuresThatAPersonShouldSee(t *testing.T) {
	for _, tt := range []struct {
		err  error
		told bool
	}{
		{syscall.ENOENT, false},
		{syscall.EEXIST, false},
		{syscall.EACCES, false},
		{nil, false},
		{syscall.EIO, true},
		{syscall.ENOSPC, true},
		{syscall.EMFILE, true},
		{errors.New("anything unknown"), true},
		{fmt.Errorf("x: %w", ErrRefused), true},
		{ErrReadOnly, true},
	} {
		t.Run(fmt.Sprint(tt.err), func(t *testing.T) {
			w := newWorld(t, Part{Name: "@a/b", Volume: newFake("f")})
			var got []Failure
			w.tell = func(f Failure) { got = append(got, f) }
			h := header(1)
			c := w.begin(opUnlink, nil, &h)
			c.name = "f"
			c.end(tt.err)
			assert.Must(t, len(got) > 0 == tt.told, "told", got, "want", tt.told)
			if tt.told && (got[0].Part != "@a/b" || got[0].Path != "f" || got[0].Op != "unlink") {
				t.Errorf("told %+v, want the part, the operation and the path", got[0])
			}
		})
	}
}

// A nudge keeps the times of a file, whoever serves it, and reaches nothing outside of
// the mount.
func TestNudge(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.Mkdir(dir+"/mnt", 0o755))
	for _, name := range []string{"/outside", "/mnt/f"} {
		assert.OK(t, os.WriteFile(dir+name, nil, 0o644))
	}
	then := time.Unix(1_000_000_000, 5)
	assert.OK(t, os.Chtimes(dir+"/mnt/f", then, then))
	assert.OK(t, Nudge(dir+"/mnt", "f"))
	info, err := os.Stat(dir + "/mnt/f")
	assert.OK(t, err)
	assert.True(t, info.ModTime().Equal(then), "the time of change is", info.ModTime())
	assert.Is(t, Nudge(dir+"/mnt", "../outside"), unix.EXDEV)
}

// What the nudger sets changes nothing, in a read-only part too, and is not
// believed for long. From anybody else it is a change.
func TestNudgerChangesNothing(t *testing.T) {
	set := func(valid, pid uint32) (changed []string, valids uint64, status fuse.Status) {
		v := newFake("f")
		w := newWorld(t, Part{Name: "@a/b", Volume: v, ReadOnly: "why not"})
		w.nudger.Store(int64(os.Getpid()))
		h := header(w.mustWalk("f").NodeId)
		h.Pid = pid
		in := &fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: h, Valid: valid}}
		var out fuse.AttrOut
		status = w.SetAttr(nil, in, &out)
		return v.changed, out.AttrValid, status
	}
	self := uint32(unix.Gettid())
	changed, valid, status := set(fuse.FATTR_MTIME, self)
	assert.True(t, len(changed) == 0 && valid == 0 && status == fuse.OK, "a nudge: changed", changed, "believed for", valid, "s", status)
	for _, tt := range []struct{ valid, pid uint32 }{{fuse.FATTR_MTIME, 1}, {fuse.FATTR_MODE, self}, {fuse.FATTR_MTIME | fuse.FATTR_SIZE, self}} {
		_, _, status := set(tt.valid, tt.pid)
		assert.True(t, status == fuse.EROFS, tt, "in a read-only part:", status)
	}
}

func TestPanicIsContained(t *testing.T) {
	w := newWorld(t, Part{Volume: newFake()})
	var got []Failure
	w.tell = func(f Failure) { got = append(got, f) }
	assert.Equal(t, w.panicked("boom"), fuse.EIO, "status")
	if len(got) != 1 || w.stats.panics.Load() != 1 {
		t.Errorf("told %v, counted %d; want one each", got, w.stats.panics.Load())
	}
}

func TestStatsCountByErrnoAndTime(t *testing.T) {
	var s stats
	s.done(opOpen, 0, 20*time.Microsecond)
	s.done(opOpen, syscall.ENOENT, time.Minute)
	got := s.snapshot(nil)
	assert.Must(t, len(got.Ops) == 1, len(got.Ops), "operations, want only open")
	o := got.Ops[0]
	assert.True(t, o.Op == "open" && o.Count == 2 && o.Errnos[0] == 1 && o.Errnos[syscall.ENOENT] == 1, "got", o)
	assert.True(t, o.Buckets[1] == 1 && o.Buckets[len(Buckets)] == 1, "buckets", o.Buckets, "want one up to 50us and one beyond the last")
}

// A node id that was never given must not reach a volume.
func TestUnknownNode(t *testing.T) {
	w := newWorld(t, Part{Volume: newFake()})
	h := header(99 << slotShift)
	assert.Equal(t, w.Lookup(nil, &h, "x", &fuse.EntryOut{}), fuse.EACCES, "lookup")
	w.Forget(99<<slotShift, 1)
	_, st := w.Read(nil, &fuse.ReadIn{Fh: 77}, nil)
	assert.True(t, st == fuse.EBADF, "read of an unknown handle:", st, "want EBADF")
}

func TestTimesBeforeTheEpoch(t *testing.T) {
	sec, nsec := stamp(time.Unix(-5, 7))
	if int64(sec) != -5 || nsec != 7 {
		t.Errorf("got %d %d, want -5 7", int64(sec), nsec)
	}
	sec, nsec = stamp(time.Time{})
	assert.True(t, sec == 0 && nsec == 0, "the zero time is", sec, nsec, "want the epoch")
}

func TestMountFlags(t *testing.T) {
	text, flags := mountFlags([]string{"default_permissions", "ro", "noatime", "rw"})
	assert.True(t, len(text) == 1 && text[0] == "default_permissions", "text", text)
	const want = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_RDONLY | syscall.MS_NOATIME
	assert.Equal(t, flags, want, "flags")
}
