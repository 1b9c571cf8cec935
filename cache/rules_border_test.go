package cache

import (
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
)

// out excludes what is below a directory "out", and objects anywhere.
type out struct{}

func (out) Match(path string, _ bool) bool {
	return path == "out" || strings.HasPrefix(path, "out/") || strings.HasSuffix(path, ".o") || strings.Contains(path, ".o/")
}

func (out) SameBelow(_, _ string) bool { return false }

func (out) String() string { return "out *.o" }

func excluding(_ *world, o *Options) { o.Exclude = out{} }

// Names cross the border of what is excluded where nothing is lost by it; else
// rename fails as it does between file systems, and mv copies.
func TestRenameAcrossTheBorder(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to string
		prepare  func(w *world)
		want     syscall.Errno
		backend  []string
		left     bool // the backend deletes it, and that is told
	}{
		{"a file that is here", "f", "out/f", func(w *world) { w.get("f") }, 0, []string{"d/", "d/a: 1", "g: 3"}, true},
		{"a file that is not here", "f", "out/f", nil, syscall.EXDEV, []string{"d/", "d/a: 1", "f: 2", "g: 3"}, false},
		{"a file comes in", "out/local", "in", nil, 0, []string{"d/", "d/a: 1", "f: 2", "g: 3", "in: local"}, false},
		{"a file comes in over another", "out/local", "f", nil, 0, []string{"d/", "d/a: 1", "f: local", "g: 3"}, false},
		{"a file stays out", "out/local", "x.o", nil, 0, []string{"d/", "d/a: 1", "f: 2", "g: 3"}, false},
		{"a directory", "d", "out/d", nil, syscall.EXDEV, []string{"d/", "d/a: 1", "f: 2", "g: 3"}, false},
		{"a directory with something excluded", "d", "e", func(w *world) { w.ok(w.put("d/x.o", "x")) }, 0,
			[]string{"e/", "e/a: 1", "f: 2", "g: 3"}, false},
		{"a directory comes in", "out/sub", "sub", nil, syscall.EXDEV, []string{"d/", "d/a: 1", "f: 2", "g: 3"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, excluding, holding("d/a", "1", "f", "2", "g", "3"))
			w.walk("d/a")
			w.do("mkdir out", "put out/local local", "mkdir out/sub")
			if c.prepare != nil {
				c.prepare(w)
			}
			if got := fs.Errno(w.rename(c.from, c.to)); got != c.want {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			w.settle()
			w.until(func() bool { return w.v.Status().Queued == 0 })
			w.backend(c.backend...)
			if problems := w.v.Status().Problems; c.left != (len(problems) == 1) || c.left && problems[0].Path != c.from {
				t.Errorf("told %+v", problems)
			}
		})
	}
}

// What never was at the backend cannot be deleted there by its rename, whatever
// the backend still has under its old name.
func TestRenameOfWhatNeverLeft(t *testing.T) {
	w := newWorld(t, onlyAsked, excluding, holding("d/a", "1", "f", "2"))
	w.walk("d/a")
	w.do("mkdir out", "mv d e", "put d new, and not sent", "rm f")
	_, err := w.v.Mknod(me, fs.RootIno, "f", syscall.S_IFIFO|0o600, 0)
	w.ok(err)
	for _, name := range []string{"d", "f"} {
		w.ok(w.rename(name, "out/"+name))
	}
	w.noProblems()
	w.ok(w.sendAll())
	w.backend("e/", "e/a: 1")
}
