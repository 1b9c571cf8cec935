package table

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// faults are hooks that can be changed while the table is open.
type faults struct {
	vfs  *hookFS
	hook atomic.Pointer[func(op, kind string) error]
}

func newFaults(below vfs.FS) *faults {
	f := &faults{}
	f.work()
	f.vfs = &hookFS{FS: below, hook: func(op, kind string) error { return (*f.hook.Load())(op, kind) }}
	return f
}

func (f *faults) set(hook func(op, kind string) error) { f.hook.Store(&hook) }

// fail has what is chosen fail, and nothing else.
func (f *faults) fail(err error, chosen func(op, kind string) bool) {
	f.set(func(op, kind string) error {
		if chosen(op, kind) {
			return err
		}
		return nil
	})
}

// work has nothing fail.
func (f *faults) work() { f.set(func(string, string) error { return nil }) }

// steps runs steps from one on, until one fails or the last is done.
func steps(tab *Table, from, to int) (last int, err error) {
	for i := from; i <= to; i++ {
		if err := step(tab, i); err != nil {
			return i - 1, err
		}
	}
	return to, nil
}

// TestWriteFails: whatever cannot be written, the process lives on, the table
// says so and answers nothing more, and the next Open finds what was committed.
func TestWriteFails(t *testing.T) {
	tests := []struct{ op, kind string }{
		{"write", "log"}, {"create", "log"}, {"sync", "log"}, {"sync", "dir"},
		{"write", "manifest"}, {"sync", "manifest"},
	}
	for _, tt := range tests {
		t.Run(tt.op+" "+tt.kind, func(t *testing.T) {
			below := vfs.NewMem()
			f := newFaults(below)
			tab := open(t, "/t", Options{FS: f.vfs, memTable: 64 << 10})
			assert.OK(t, assert.ErrOf(steps(tab, 1, 300)))
			f.fail(syscall.EIO, func(op, kind string) bool { return op == tt.op && kind == tt.kind })
			last, err := steps(tab, 301, 20_000)
			assert.Is(t, err, syscall.EIO, "Commit")
			assert.Is(t, tab.Sync(), syscall.EIO, "Sync")
			assert.True(t, tab.Inode(Root) == nil || tab.Get("n") == nil, "it answers")
			tab.Abort()
			assert.Is(t, step(tab, last+1), syscall.EIO, "a later commit")
			assert.Is(t, tab.Close(), syscall.EIO, "Close")
			f.work()
			tab = open(t, "/t", Options{FS: below})
			n, err := verify(tab)
			assert.Is(t, err, nil)
			assert.True(t, n == last || n == last+1, last, "commits returned, and are there:", n)
			assert.True(t, tab.Session().Killed(), "it ended as", tab.Session())
			assert.Is(t, tab.Close(), nil)
		})
	}
}

// TestDiskFull: when there is no room for what a commit needs, it says so and
// nothing has happened; when there is room again, all goes on.
func TestDiskFull(t *testing.T) {
	tests := []struct {
		name string
		full func(op, kind string) bool
	}{
		{"log", func(op, kind string) bool { return kind == "log" && op == "allocate" }},
		{"tables", func(op, kind string) bool { return kind == "sst" }},
		{"manifest", func(op, kind string) bool { return kind == "manifest" && op == "write" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFaults(vfs.NewMem())
			tab := open(t, "/t", Options{FS: f.vfs, memTable: 64 << 10})
			assert.OK(t, assert.ErrOf(steps(tab, 1, 300)))
			f.fail(syscall.ENOSPC, tt.full)
			last, err := steps(tab, 301, 20_000)
			assert.Must(t, errors.Is(err, ErrFull) && errors.Is(err, syscall.ENOSPC), "step", last+1, err)
			assert.Equal(t, string(tab.Get("n")), fmt.Sprint(last+1), "the changes are gone")
			tab.Abort()
			wantSteps(t, tab, last, "after Abort")
			f.work()
			assert.Await(func() bool { // Pebble tries again in its own time
				if err = step(tab, last+1); errors.Is(err, ErrFull) {
					tab.Abort()
				}
				return !errors.Is(err, ErrFull)
			})
			assert.OK(t, err)
			wantSteps(t, tab, last+1, "in the end")
			assert.Is(t, tab.Close(), nil)
		})
	}
}

// TestNoSpaceIsAsked: who can make room is asked for it before a commit fails.
func TestNoSpaceIsAsked(t *testing.T) {
	for _, tt := range []struct{ op, kind string }{
		{"allocate", "log"}, {"create", "log"}, {"write", "log"}, {"write", "sst"}, {"write", "manifest"},
	} {
		t.Run(tt.op+" "+tt.kind, func(t *testing.T) {
			f := newFaults(vfs.NewMem())
			var asked atomic.Int32
			tab := open(t, "/t", Options{FS: f.vfs, memTable: 64 << 10, NoSpace: func() {
				asked.Add(1)
				f.work()
			}})
			assert.OK(t, assert.ErrOf(steps(tab, 1, 10)))
			f.fail(syscall.ENOSPC, func(op, kind string) bool { return op == tt.op && kind == tt.kind })
			last, err := steps(tab, 11, 500)
			assert.Is(t, err, nil, "step", last+1)
			assert.False(t, asked.Load() == 0, "nobody was asked")
			assert.Is(t, tab.Close(), nil)
		})
	}
}

// unsynced is a table whose next sync has something to do, and that alone.
func unsynced(t *testing.T) (*faults, *Table) {
	t.Helper()
	f := newFaults(vfs.NewMem())
	tab := open(t, "/t", Options{FS: f.vfs})
	assert.OK(t, assert.ErrOf(steps(tab, 1, 2)))
	tab.numbers.wait() // has a sync of its own
	assert.OK(t, step(tab, 3))
	return f, tab
}

// TestSyncIsShared: who comes while a sync runs waits for the next one, all
// for the same.
func TestSyncIsShared(t *testing.T) {
	f, tab := unsynced(t)
	var syncs atomic.Int32
	running, free := make(chan struct{}), make(chan struct{})
	f.set(func(op, kind string) error {
		if op == "sync" && kind == "log" && syncs.Add(1) == 1 {
			close(running)
			<-free
		}
		return nil
	})
	var all sync.WaitGroup
	call := func() {
		all.Go(func() {
			assert.Is(t, tab.Sync(), nil)
		})
	}
	call()
	<-running
	assert.OK(t, step(tab, 4)) // what the running sync may miss
	for range 20 {
		call()
	}
	// Whenever they come the result is the same; but those that come before
	// the first is done are those that could get a wrong one.
	for waits := false; !waits; runtime.Gosched() {
		tab.disk.mu.Lock()
		waits = tab.disk.next != nil
		tab.disk.mu.Unlock()
	}
	close(free)
	all.Wait()
	// The one that ran is not enough for those who came behind it, and one
	// more is, for all of them.
	assert.Equal(t, syncs.Load(), 2, "syncs for 21 calls")
	before := syncs.Load()
	assert.Is(t, tab.Sync(), nil)
	assert.Equal(t, syncs.Load(), before, "syncs after one of nothing")
	assert.OK(t, tab.Close())
}

// TestSyncFails: a sync that failed is never a success later.
func TestSyncFails(t *testing.T) {
	f, tab := unsynced(t)
	f.fail(syscall.EIO, func(op, _ string) bool { return op == "sync" })
	assert.Is(t, tab.Sync(), syscall.EIO, "Sync")
	f.work()
	assert.Is(t, tab.Sync(), syscall.EIO, "the next Sync")
	assert.Is(t, tab.Close(), syscall.EIO, "Close")
}

// TestFrozen: a frozen disk changes nothing, and nobody notices.
func TestFrozen(t *testing.T) {
	below := vfs.NewMem()
	var failure error
	d := newDisk(below, nil, func(err error) { failure = err })
	assert.OK(t, writeFile(d, "/", "/before", "x"))
	d.freeze(syscall.EIO)
	if err := errors.Join(
		writeFile(d, "/", "/after", "y"), d.MkdirAll("/dir", 0o700), d.Rename("/before", "/gone"),
		d.Link("/before", "/link"), d.Remove("/before"), d.RemoveAll("/"),
	); err != nil || !errors.Is(failure, syscall.EIO) {
		t.Errorf("noticed: %v; failed: %v", err, failure)
	}
	list := assert.Of(below.List("/")).OK(t)
	assert.Slice(t, list, []string{"before"}, "there is")
	// Pebble takes a file that is not there for the end of the world.
	_, err := d.Open("/after")
	assert.True(t, errors.Is(err, syscall.EIO) && !errors.Is(err, fs.ErrNotExist), "Open of what was never written says", err)
}

// TestCommitDoesNotSync: a commit does not wait for the disk.
func TestCommitDoesNotSync(t *testing.T) {
	f := newFaults(vfs.NewMem())
	tab := open(t, "/t", Options{FS: f.vfs})
	assert.OK(t, assert.ErrOf(steps(tab, 1, 2)))
	tab.numbers.wait() // has a sync of its own
	f.set(func(op, kind string) error {
		assert.False(t, op == "sync", "a sync of", kind)
		return nil
	})
	assert.OK(t, assert.ErrOf(steps(tab, 3, 50)))
	f.work()
	assert.OK(t, tab.Close())
}

// roomyFS is a disk that is full from when it is said to be: only what was set aside
// before can be written.
type roomyFS struct {
	vfs.FS
	full *atomic.Bool
}

type roomyFile struct {
	vfs.File
	full       *atomic.Bool
	room, size int64
}

func (r roomyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := r.FS.Create(name, c)
	return &roomyFile{File: f, full: r.full}, err
}

func (r roomyFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	room := int64(0)
	if was, err := r.FS.Stat(old); err == nil {
		room = was.Size()
	}
	if filepath.Base(old) == "spare" { // memory knows no blocks
		room = 1 << 40
	}
	f, err := r.FS.ReuseForWrite(old, name, c)
	return &roomyFile{File: f, full: r.full, room: room}, err
}

func (f *roomyFile) Preallocate(offset, length int64) error {
	if f.full.Load() {
		return syscall.ENOSPC
	}
	f.room = max(f.room, offset+length)
	return f.File.Preallocate(offset, length)
}

func (f *roomyFile) Write(p []byte) (int, error) {
	if f.full.Load() && f.size+int64(len(p)) > f.room {
		return 0, syscall.ENOSPC
	}
	n, err := f.File.Write(p)
	f.size += int64(n)
	return n, err
}

// TestDiskFullAtAnyLog: whenever the disk gets full, also before a log is begun in the
// middle of a commit, the commit says so and the table lives on. And what is closed
// then is not taken for damaged.
func TestDiskFullAtAnyLog(t *testing.T) {
	for at := 1; at < 2000; at += tier.Pick(673, 61) {
		var full atomic.Bool
		below := vfs.NewMem()
		tab := open(t, "/t", Options{FS: roomyFS{below, &full}, memTable: 64 << 10})
		assert.OK(t, assert.ErrOf(steps(tab, 1, at)))
		full.Store(true)
		last, err := steps(tab, at+1, 20_000)
		assert.Must(t, errors.Is(err, ErrFull) && tab.Err() == nil, "full after", at, "commits: commit", last+1, "says", err, tab.Err())
		_ = tab.Close() // it may have to say that it is no clean end
		tab = open(t, "/t", Options{FS: below})
		wantSteps(t, tab, last, "full after", at, "commits")
		assert.Is(t, tab.Close(), nil)
	}
}

// TestGuardOnAFullDisk: a table that could not write its guard at its end has lost
// nothing.
func TestGuardOnAFullDisk(t *testing.T) {
	f := newFaults(vfs.NewMem())
	tab := open(t, "/t", Options{FS: f.vfs})
	assert.OK(t, assert.ErrOf(steps(tab, 1, 300)))
	tab.numbers.wait()
	f.fail(syscall.ENOSPC, func(_, kind string) bool { return kind == "other" })
	assert.OK(t, tab.Close())
	f.work()
	tab = open(t, "/t", Options{FS: f.vfs})
	wantSteps(t, tab, 300)
	assert.True(t, tab.Session().Clean, "it ended as", tab.Session())
	assert.Is(t, tab.Close(), nil)
}

// TestPausesGrow: a disk that stays full is tried less and less often, and nobody
// waits for that in the end.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(vfs.NewMem(), nil, func(error) {})
		took := func() time.Duration {
			begun := time.Now() // of the bubble
			d.pause()
			return time.Since(begun)
		}
		for _, want := range []time.Duration{leastPause, 2 * leastPause, 4 * leastPause} {
			assert.Equal(t, took(), want, "a pause of")
		}
		for range 100 {
			d.pause()
		}
		assert.Equal(t, took(), mostPause, "a pause of")
		close(d.closing)
		assert.Equal(t, took(), 0, "a pause when it is being closed")
	})
}

// TestLastBlocks: a commit that fits goes through, also when there is no room to set
// more aside.
func TestLastBlocks(t *testing.T) {
	d := newDisk(vfs.NewMem(), nil, func(error) {})
	var asked []int64
	allocate := func(n int64) error {
		asked = append(asked, n)
		if n > 1000 {
			return syscall.ENOSPC
		}
		return nil
	}
	assert.OK(t, d.setAside(1000, allocate))
	assert.Equal(t, len(asked), 2, "asked for", asked)
	err := d.setAside(1001, allocate)
	assert.True(t, isFull(err), "got", err)
}

// TestReadOnlyOnAFullDisk: a table can be read when nothing at all can be written,
// however its last session ended, and is as it was afterwards.
func TestReadOnlyOnAFullDisk(t *testing.T) {
	for _, clean := range []bool{false, true} {
		below := vfs.NewCrashableMem()
		f := newFaults(below)
		tab := open(t, "/t", Options{FS: f.vfs, memTable: 64 << 10})
		assert.OK(t, assert.ErrOf(steps(tab, 1, 2000)))
		if clean {
			assert.OK(t, tab.Close())
		} else {
			below = below.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRand(1)})
			killed := tab
			t.Cleanup(func() { _ = killed.Close() })
		}
		full := newFaults(below)
		full.fail(syscall.ENOSPC, func(string, string) bool { return true })
		for range 2 {
			tab := assert.Of(Open("/t", Options{FS: full.vfs, ReadOnly: true, Strict: true})).OK(t)
			wantSteps(t, tab, 2000)
			assert.Equal(t, tab.Session().Clean, clean, "it ended as", tab.Session())
			assert.Is(t, tab.Close(), nil)
		}
		tab = open(t, "/t", Options{FS: below})
		wantSteps(t, tab, 2000)
		assert.Is(t, tab.Close(), nil)
	}
}
