package inotify

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// The walk through the tree gives way to requests, and only then.
func TestWalkGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w walks
		w.init()
		for i, c := range []struct {
			requests uint32
			want     time.Duration
		}{{0, 0}, {1, breather}, {1, 0}, {3, breather}} {
			start := time.Now()
			w.giveWay(c.requests)
			assert.Equal(t, time.Since(start), c.want, i, "paused")
		}
		close(w.ending)
		start := time.Now()
		w.giveWay(4)
		assert.True(t, time.Since(start) == 0, "paused at the end")
	})
}

// A job that waits already is not put twice; a rescan ends with the last of them.
func TestJobs(t *testing.T) {
	var w walks
	w.init()
	w.put(job{Key{Dir: root}, 0})
	assert.False(t, w.busy(), "it takes jobs before it is open")
	w.open()
	w.rescan(root)
	w.rescan(root)
	w.put(job{Key{root, "d"}, Found})
	j, _ := w.take()
	assert.True(t, j == (job{Key{Dir: root}, Rescan}), "took", j)
	w.rescan(root) // while the first is walked
	w.rescanned()
	assert.True(t, w.behind.Load(), "believed before the second rescan")
	w.take()
	w.take()
	w.rescanned()
	assert.False(t, w.behind.Load(), "not believed after it")
	_, more := w.take()
	assert.True(t, !more && !w.busy(), "a job is left")
}

// A tree that appears is walked whole, from the name that was reported.
func TestWalkOfANewTree(t *testing.T) {
	w, u := watchTree(t, Options{})
	side := filepath.Join(t.TempDir(), "new")
	ok(t, os.MkdirAll(filepath.Join(side, "sub"), 0o755))
	ok(t, os.WriteFile(filepath.Join(side, "sub", "f"), nil, 0o644))
	ok(t, os.Rename(side, u.path(Key{root, "new"})))
	u.reported(t, root, "new", 0)
	w.Walk(Key{root, "new"}, Found)
	w.Walk(Key{root, "none"}, Found)
	waitFor(t, "the walk", func() bool { return !w.walks.busy() })
	u.mu.Lock()
	defer u.mu.Unlock()
	assert.True(t, u.found["f"] == Found && u.found["sub"] == Found && u.found["new"] == 0, "found", u.found)
	assert.Equal(t, w.Status().Watched, 3, "directories watched")
}
