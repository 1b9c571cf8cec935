package cache

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/tier"
)

// lateNotes is a notifier whose notes have not reached the kernel yet.
type lateNotes struct{ nobody }

// Who opens a file reads all of the version that the open found, also where the
// kernel still believes in the size of the one before: half of a version is none
// that anybody wrote.
func TestOpenKnowsTheSizeOfItsVersion(t *testing.T) {
	tier.RequireFUSE(t)
	const theirs = "theirs, which is longer"
	w := newWorld(t, holding("f", "short"), func(_ *world, o *Options) { o.Owner, o.Policy.TTL = nil, time.Hour })
	dir := t.TempDir()
	s, err := fs.Serve(dir, []fs.Part{{Name: "@acme/test", Volume: w.v}}, fs.Options{})
	w.ok(err)
	t.Cleanup(func() {
		w.ok(s.Unmount())
		s.Wait()
		w.gone = true // the server has closed it
	})
	w.v.Bind(lateNotes{})
	path := filepath.Join(dir, "f")
	if _, err := os.Stat(filepath.Join(dir, "@acme/test")); err == nil {
		path = filepath.Join(dir, "@acme/test/f")
	}
	before, err := os.Stat(path)
	w.ok(err)
	w.tamper("f", theirs)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	w.ok(err)
	defer f.Close()
	got, err := io.ReadAll(f)
	w.ok(err)
	if before.Size() != 5 || string(got) != theirs {
		t.Errorf("size %d, read %q, want 5 and %q", before.Size(), got, theirs)
	}
}
