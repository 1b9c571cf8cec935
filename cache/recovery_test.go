package cache

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// onlyAsked leaves sending to Commit, and lets close return before.
func onlyAsked(_ *world, o *Options) { o.Policy.Commit, o.Policy.NoWait = DueAsked, true }

// powerLost goes on with the state as it is, as after a loss of power that lost
// nothing; change may take away what the disk never had.
func (w *world) powerLost(change func(dir string)) {
	w.Helper()
	dir := copyState(w.T, w.v)
	if change != nil {
		change(dir)
	}
	old := w.v
	old.stop()
	w.T.Cleanup(func() { old.Close() })
	w.o.StateDir, w.o.boot = dir, "another"
	w.start()
}

// dataFile is the content file of an inode.
func dataFile(t *testing.T, dir string, ino fs.Ino) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "data", "*", fmt.Sprint(ino)))
	assert.Must(t, len(found) == 1, "content files of", ino, found)
	return found[0]
}

func (w *world) record(path string) table.Inode {
	w.Helper()
	return w.inode(w.walk(path))
}

func (w *world) sendAll() error {
	w.Helper()
	_, err := w.v.Commit(w.Context(), CommitOptions{})
	return err
}

// After a kill what was written is there, though nobody closed it, and goes to
// the backend.
func TestRecoverAfterAKill(t *testing.T) {
	w := newWorld(t, onlyAsked, holding("old", "old content", "same", "same"))
	o := w.open("old", syscall.O_RDWR)
	w.write(o, "NEW", 0)
	fresh := w.create("fresh")
	w.write(fresh, "never closed", 0)
	w.ok(w.put("closed", "closed"))
	same := w.open("same", syscall.O_RDWR) // and not written
	w.read(same)
	nameless := w.create("nameless")
	w.write(nameless, "gone", 0)
	w.ok(w.unlink("nameless"))
	ino := w.walk("old")
	w.killed()
	assert.Equal(t, w.get("old"), "NEW content", "old")
	assert.Equal(t, w.walk("old"), ino, "the inode of the old name")
	for _, path := range []string{"old", "fresh"} {
		n := w.record(path)
		assert.True(t, !n.Writing && !n.Suspect && n.Size != 0, path, n)
	}
	w.ok(w.sendAll())
	w.backend("closed: closed", "fresh: never closed", "old: NEW content", "same: same")
	locked := w.v.lock()
	left := append(locked.Orphans(), files.DirtyIntents(locked.View)...)
	locked.unlock()
	assert.Equal(t, len(left), 0, "still noted:", left)
	for _, line := range w.log("nameless") {
		assert.False(t, strings.HasSuffix(line, "gone"), "never closed, and kept:", line)
	}
}

// A clean end syncs: the next boot trusts what it finds.
func TestRecoverTrustsACleanEnd(t *testing.T) {
	w := newWorld(t, onlyAsked, func(w *world, _ *Options) { w.p = memory.New(memory.Options{NoDigest: true}) }, holding("clean", "clean"))
	w.get("clean")
	w.ok(w.put("unsaved", "unsaved"))
	w.stop()
	w.o.boot = "another"
	w.start()
	assert.False(t, w.record("unsaved").Suspect, "suspect")
	assert.Equal(t, w.record("clean").State, table.Whole, "clean content was dropped")
}
