package table

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// newestLog is the log, below dir, that the last write went to. Whether one before it
// is still there depends on how far the database had got in the background.
func newestLog(dir string) string {
	logs, _ := filepath.Glob(filepath.Join(dir, "db/log/*.log"))
	return "db/log/" + filepath.Base(slices.Max(logs))
}

// killed is what a kill leaves of a table with some steps: no end of a session.
// It says which log is the newest, and how long that is.
func killed(t *testing.T) (dir, newest string, size int) {
	t.Helper()
	from := filepath.Join(scratchDir, "killed")
	if _, err := os.Stat(from); err != nil {
		made := t.TempDir()
		tab := open(t, filepath.Join(made, "table"), Options{})
		assert.OK(t, assert.ErrOf(steps(tab, 1, 900)))
		assert.OK(t, os.CopyFS(from, os.DirFS(made))) // the table, and what is beside it
		assert.OK(t, tab.Close())
	}
	parent := t.TempDir()
	assert.OK(t, os.CopyFS(parent, os.DirFS(from)))
	dir = filepath.Join(parent, "table")
	newest = newestLog(dir)
	rewrite(t, dir, newest, func(b []byte) []byte {
		size = len(b)
		return b
	})
	return dir, newest, size
}

// TestCutLog: a log that ends before what was written to it by much more than one
// write is damaged, not torn, unless the power was cut.
func TestCutLog(t *testing.T) {
	_, _, size := killed(t)
	assert.Must(t, size >= 20*markStep, "the log has", size, "bytes, which is too little to see anything")
	for _, tt := range []struct {
		name    string
		cut     int
		boot    string
		damaged bool
	}{
		{"whole", 0, "", false},
		{"a torn write", 1000, "", false},
		{"some", 3 * markStep, "", true},
		{"half", size / 2, "", true},
		{"all", size, "", true},
		{"half, power cut", size / 2, "another", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, newest, _ := killed(t)
			rewrite(t, dir, newest, func(b []byte) []byte { return b[:max(0, len(b)-tt.cut)] })
			tab, err := Open(dir, Options{BootID: tt.boot})
			assert.True(t, errors.Is(err, ErrDamaged) == tt.damaged && (err == nil || tt.damaged), "got error", err)
			if err == nil {
				assert.Is(t, tab.Close(), nil)
			}
		})
	}
	t.Run("removed", func(t *testing.T) {
		dir, newest, _ := killed(t)
		remove(t, dir, newest)
		if tab, err := Open(dir, Options{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("got error %v", err)
			if err == nil {
				tab.Close()
			}
		}
	})
}

// TestMarkSaysNothing: a mark that is not there, makes no sense or is of a log
// before the newest is no reason to call a table damaged.
func TestMarkSaysNothing(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"missing": os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte("00000"), 0o600) },
		"old":     func(path string) error { return os.WriteFile(path, encodeMark(1, 1<<20), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, _ := killed(t)
			assert.OK(t, change(markPath(dir)))
			tab := open(t, dir, Options{})
			n := tab.Session()
			assert.True(t, !n.Clean && n.SameBoot, "the session ended as", n)
			assert.Is(t, tab.Close(), nil)
		})
	}
}
