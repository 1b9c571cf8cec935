//go:build soak

package cache

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// processTime is what this process has used of the processors: unlike the
// clock it does not depend on what else the machine does.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	assert.OK(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// This measures, and with many files: TestRecoverIsOneUpdate is what make test has of it.
func TestRecoverIsFast(t *testing.T) {
	w := newWorld(t, onlyAsked)
	const files = 2_000 // 10 000 take five times as long
	w.o.StateDir = w.unclosed(files)
	began := processTime(t)
	w.start()
	took := processTime(t) - began
	t.Logf("%v", took)
	if limit := 3 * time.Second; took > limit {
		t.Errorf("took %v", took)
	}
	locked := w.v.lock()
	defer locked.unlock()
	assert.Equal(t, locked.table.DirtyCount(), files, "dirty")
}
