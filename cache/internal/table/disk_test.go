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
	f.set(func(string, string) error { return nil })
	f.vfs = &hookFS{FS: below, hook: func(op, kind string) error { return (*f.hook.Load())(op, kind) }}
	return f
}

func (f *faults) set(hook func(op, kind string) error) { f.hook.Store(&hook) }

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
			f.set(func(op, kind string) error {
				if op == tt.op && kind == tt.kind {
					return syscall.EIO
				}
				return nil
			})
			last, err := steps(tab, 301, 20_000)
			if !errors.Is(err, syscall.EIO) || !errors.Is(tab.Sync(), syscall.EIO) || tab.Inode(Root) != nil && tab.Get("n") != nil {
				t.Fatalf("Commit says %v, Sync %v", err, tab.Sync())
			}
			tab.Abort()
			assert.Is(t, step(tab, last+1), syscall.EIO, "a later commit")
			assert.Is(t, tab.Close(), syscall.EIO, "Close")
			f.set(func(string, string) error { return nil })
			tab = open(t, "/t", Options{FS: below})
			if n, err := verify(tab); err != nil || n < last || n > last+1 || !tab.Session().Killed() {
				t.Errorf("%d commits returned, and %d are there, after %+v: %v", last, n, tab.Session(), err)
			}
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
			f.set(func(op, kind string) error {
				if tt.full(op, kind) {
					return syscall.ENOSPC
				}
				return nil
			})
			last, err := steps(tab, 301, 20_000)
			if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("step %d: %v", last+1, err)
			}
			assert.Equal(t, string(tab.Get("n")), fmt.Sprint(last+1), "the changes are gone")
			tab.Abort()
			if n, err := verify(tab); n != last || err != nil {
				t.Errorf("after Abort: step %d, not %d: %v", n, last, err)
			}
			f.set(func(string, string) error { return nil })
			assert.Await(func() bool { // Pebble tries again in its own time
				if err = step(tab, last+1); errors.Is(err, ErrFull) {
					tab.Abort()
				}
				return !errors.Is(err, ErrFull)
			})
			assert.OK(t, err)
			if n, err := verify(tab); n != last+1 || err != nil {
				t.Errorf("in the end: step %d, not %d: %v", n, last+1, err)
			}
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
				f.set(func(string, string) error { return nil })
			}})
			assert.OK(t, assert.ErrOf(steps(tab, 1, 10)))
			f.set(func(op, kind string) error {
				if op == tt.op && kind == tt.kind {
					return syscall.ENOSPC
				}
				return nil
			})
			if last, err := steps(tab, 11, 500); err != nil {
				t.Errorf("step %d: %v", last+1, err)
			}
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
	if err := step(tab, 4); err != nil { // what the running sync may miss
		t.Fatal(err)
	}
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
	if err := tab.Sync(); err != nil || syncs.Load() != before {
		t.Errorf("a sync of nothing cost %d: %v", syncs.Load()-before, err)
	}
	assert.OK(t, tab.Close())
}

// TestSyncFails: a sync that failed is never a success later.
func TestSyncFails(t *testing.T) {
	f, tab := unsynced(t)
	f.set(func(op, kind string) error {
		if op == "sync" {
			return syscall.EIO
		}
		return nil
	})
	assert.Is(t, tab.Sync(), syscall.EIO, "Sync")
	f.set(func(string, string) error { return nil })
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
	if list, err := below.List("/"); len(list) != 1 || list[0] != "before" || err != nil {
		t.Errorf("there is %q: %v", list, err)
	}
	// Pebble takes a file that is not there for the end of the world.
	if _, err := d.Open("/after"); !errors.Is(err, syscall.EIO) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of what was never written says %v", err)
	}
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
	f.set(func(string, string) error { return nil })
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
		if !errors.Is(err, ErrFull) || tab.Err() != nil {
			t.Fatalf("full after %d commits: commit %d says %v, and the table %v", at, last+1, err, tab.Err())
		}
		_ = tab.Close() // it may have to say that it is no clean end
		tab = open(t, "/t", Options{FS: below})
		if n, err := verify(tab); n != last || err != nil {
			t.Errorf("full after %d commits: %d are there, not %d: %v", at, n, last, err)
		}
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
	f.set(func(op, kind string) error {
		if kind == "other" {
			return syscall.ENOSPC
		}
		return nil
	})
	assert.OK(t, tab.Close())
	f.set(func(string, string) error { return nil })
	tab = open(t, "/t", Options{FS: f.vfs})
	if n, err := verify(tab); n != 300 || err != nil || !tab.Session().Clean {
		t.Errorf("%d commits are there, after %+v: %v", n, tab.Session(), err)
	}
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
	if err := d.setAside(1000, allocate); err != nil || len(asked) != 2 {
		t.Errorf("asked for %v: %v", asked, err)
	}
	if err := d.setAside(1001, allocate); !isFull(err) {
		t.Errorf("got %v", err)
	}
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
		full.set(func(string, string) error { return syscall.ENOSPC })
		for range 2 {
			tab, err := Open("/t", Options{FS: full.vfs, ReadOnly: true, Strict: true})
			assert.OK(t, err)
			if n, err := verify(tab); n != 2000 || err != nil || tab.Session().Clean != clean {
				t.Errorf("%d commits are there, after %+v: %v", n, tab.Session(), err)
			}
			assert.Is(t, tab.Close(), nil)
		}
		tab = open(t, "/t", Options{FS: below})
		if n, err := verify(tab); n != 2000 || err != nil {
			t.Errorf("%d commits are there: %v", n, err)
		}
		assert.Is(t, tab.Close(), nil)
	}
}
