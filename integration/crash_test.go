package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A writer appends numbered records to its own files in a mount and remembers
// the last that it was told is written. It goes on after the mount died and
// came back, as programs do.
type writer struct {
	dir      string
	acked    atomic.Int64 // records acknowledged
	failures atomic.Int64
	stop     atomic.Bool
}

const record = "record %08d of a writer\n"

// run appends one record at a time, each through an open of its own.
func (w *writer) run() {
	for i := int64(0); !w.stop.Load(); {
		if err := w.append(i); err != nil {
			w.failures.Add(1)
			continue
		}
		i++
		w.acked.Store(i)
	}
}

// append writes record i at its place, so that a second try of a record whose
// acknowledgement was lost does no harm.
func (w *writer) append(i int64) error {
	f, err := os.OpenFile(w.dir+"/log", os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	line := fmt.Sprintf(record, i)
	_, err = f.WriteAt([]byte(line), i*int64(len(line)))
	return errors.Join(err, f.Close())
}

// check compares what the store has with what was acknowledged.
func (w *writer) check(t *testing.T, dir string) {
	t.Helper()
	got := assert.Of(os.ReadFile(dir + "/log")).OK(t)
	size := len(fmt.Sprintf(record, 0))
	if len(got) < int(w.acked.Load())*size {
		t.Errorf("%s: %d bytes, want at least %d records", dir, len(got), w.acked.Load())
		return
	}
	for i := range w.acked.Load() {
		want := fmt.Sprintf(record, i)
		if line := string(got[int(i)*size : (int(i)+1)*size]); line != want {
			t.Errorf("%s: got %q, want %q", dir, line, want)
			return
		}
	}
}

// load starts writers, each in a directory of its own.
func load(t *testing.T, mnt string, n int) ([]*writer, func()) {
	t.Helper()
	var writers []*writer
	var done sync.WaitGroup
	for i := range n {
		w := &writer{dir: filepath.Join(mnt, fmt.Sprint("w", i))}
		mkdirAll(t, w.dir)
		writers = append(writers, w)
		done.Go(w.run)
	}
	stop := func() {
		for _, w := range writers {
			w.stop.Store(true)
		}
		done.Wait()
	}
	t.Cleanup(stop)
	return writers, stop
}

// progress waits until every writer has written n records more.
func progress(t *testing.T, writers []*writer, n int64) {
	t.Helper()
	for _, w := range writers {
		goal := w.acked.Load() + n
		harness.Eventually(t, "writers get on", func() bool { return w.acked.Load() >= goal })
	}
}

// SIGKILL of the daemon loses nothing that was acknowledged; the mount comes
// back under programs that went on meanwhile.
func TestKill(t *testing.T) {
	t.Parallel()
	m, behind := flavours[0].mount(t)
	writers, stop := load(t, m.Dir, 8)
	for range 5 {
		progress(t, writers, 20)
		m.Kill()
		m.Start()
	}
	progress(t, writers, 20)
	stop()
	for i, w := range writers {
		w.check(t, filepath.Join(behind, fmt.Sprint("w", i)))
		if w.failures.Load() == 0 {
			t.Logf("writer %d met no failure", i)
		}
	}
}

// A program that holds files open, and a mapping, over the death of the daemon
// gets errors and no wrong bytes; the new mount is whole.
func TestKillWithOpenFiles(t *testing.T) {
	t.Parallel()
	m, behind := flavours[0].mount(t)
	write(t, m.Dir+"/f", "before")
	f, err := os.OpenFile(m.Dir+"/f", os.O_RDWR, 0)
	checkErr(t, "open", err, nil)
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	checkErr(t, "mmap", err, nil)
	defer unix.Munmap(mapped)
	copy(mapped, "BEFORE")
	m.Kill()
	harness.Eventually(t, "the dead mount answers ENOTCONN", func() bool {
		return errors.Is(tryOpen(m.Dir+"/f", unix.O_RDONLY), syscall.ENOTCONN)
	})
	m.Start()
	checkContent(t, m.Dir+"/f", "BEFORE")
	checkContent(t, behind+"/f", "BEFORE")
	write(t, m.Dir+"/f", "after")
	checkContent(t, behind+"/f", "after")
}

// SIGTERM under load ends the mount: programs get errors, what they were told
// is written is there.
func TestTerminateUnderLoad(t *testing.T) {
	t.Parallel()
	w := harness.New(t, harness.Options{})
	ws := w.Workspace("@acme/x", "watch")
	m := w.Mount(ws, "--stop-timeout", "2s")
	writers, stop := load(t, m.Dir, 8)
	progress(t, writers, 20)
	m.Signal(syscall.SIGTERM)
	m.WaitGone()
	stop()
	for i, w := range writers {
		w.check(t, filepath.Join(ws, fmt.Sprint("w", i)))
	}
	entries, err := os.ReadDir(m.Dir)
	assert.True(t, err == nil && len(entries) <= 8, "the mount point after SIGTERM: got", len(entries), "entries", err)
}
