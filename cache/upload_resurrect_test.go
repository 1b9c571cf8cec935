package cache

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// isDead checks that nothing is in a directory that was removed while a program is
// in it, and that nothing can be made there.
func (w *world) isDead(what string, d fs.Ino, names ...string) {
	w.Helper()
	for _, name := range names {
		e, err := w.v.Lookup(me, d, name)
		assert.True(w, err == nil && e.Ino == 0, what, "the removed directory has", name, e.Ino, err)
	}
	w.is(assert.ErrOf(w.v.Mkdir(me, d, "new", 0o755)), syscall.ENOENT)
	a := assert.Of(w.v.Attr(me, d, nil)).OK(w)
	assert.Equal(w, a.Nlink, 0, what, "links of the removed directory")
	s := assert.Of(w.v.OpenDir(me, d)).OK(w)
	defer s.Release()
	e, more, err := s.Next(me)
	assert.True(w, !more && err == nil, what, "the removed directory lists", e, err)
}

// forgotten checks that nothing is left of an inode once nobody holds it.
func (w *world) forgotten(d fs.Ino) {
	w.Helper()
	w.v.Forget(d, 1000)
	w.is(assert.ErrOf(w.v.Attr(me, d, nil)), fs.ErrStale)
}

// comesBack is how the working copy learns that others have put something into
// directories that were removed here.
var comesBack = map[string]func(w *scene){
	"refused": func(w *scene) { w.upload() },
	"pulled":  func(w *scene) { w.pull(); w.upload() },
}

// A directory that comes back is another one for who is in the one that was
// removed: the kernel holds that as dead. What was removed in it stays removed.
func TestDirectoryComesBackAsAnother(t *testing.T) {
	t.Parallel()
	for how, learn := range comesBack {
		t.Run(how, func(t *testing.T) {
			t.Parallel() // or the test's own time has that in which its cases wait for their turn
			eachStore(t, func(t *testing.T, store func(*world, *Options)) {
				w := newScene(t, unwaited, store, has("p/d/a", "A", "p/d/s/x", "X", "p/f", "F", "q", "Q"))
				if w.repo != nil || how == "refused" && w.o.Policy.Atomic && !w.p.Capabilities().EmptyDirs {
					return // a clone has what comes with a pull, and a set without empty directories names none
				}
				w.list("p/d/s")
				p, d, s := w.walk("p"), w.walk("p/d"), w.walk("p/d/s")
				w.do("rm p/d/s/x", "rmdir p/d/s", "rm p/d/a", "rmdir p/d", "rm p/f", "rmdir p")
				for _, path := range []string{"p/d/theirs", "p/d/more", "p/d/e/theirs"} {
					w.tamper(path, "T")
				}
				learn(w)
				w.sees("p/", "p/d/", "p/d/e/", "p/d/e/theirs: T", "p/d/more: T", "p/d/theirs: T", "q: Q")
				w.same()
				if how == "refused" && w.p.Capabilities().EmptyDirs {
					assert.False(t, len(w.v.Status().Problems) == 0, "nobody was told")
				}
				for what, ino := range map[string]fs.Ino{"p": p, "d": d, "s": s} {
					w.isDead(what, ino, "d", "s", "theirs", "a")
				}
				assert.True(t, w.walk("p") != p && w.walk("p/d") != d, "a directory came back under its old number")
				w.do("put p/d/ours O", "mkdir p/d/s", "put p/d/s/x X2")
				w.uploadSame()
				w.killed()
				w.sees("p/", "p/d/", "p/d/e/", "p/d/e/theirs: T", "p/d/more: T", "p/d/ours: O", "p/d/s/", "p/d/s/x: X2", "p/d/theirs: T", "q: Q")
				w.noOrphans()
			})
		})
	}
}

// What others have changed meanwhile is not deleted because it was deleted here: the store is
// asked to delete what was known, and what is there comes back.
func TestDeletionSparesWhatOthersChanged(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store func(*world, *Options)) {
		w := newScene(t, unwaited, store, has("d/f", "F", "g", "G"))
		if w.repo != nil {
			return // a clone learns of others with a pull, before it pushes
		}
		w.list("d")
		w.do("rm d/f", "rm g")
		w.tamper("d/f", "theirs")
		w.upload()
		w.sees("d/", "d/f: theirs")
		w.same()
	})
}

// However much is still to be deleted beside the directory that comes back, it is
// deleted.
func TestManyDeletionsGoOver(t *testing.T) {
	t.Parallel()
	const many = 300 // more than are handed over at a time
	w := newScene(t, over(memory.Options{}), unwaited, holding(numbered(many, "p/f%d")...), holding(numbered(many, "q/f%d")...), holding("p/d/a", "A"))
	w.list("q")
	w.list("p/d")
	w.do("rm p/d/a", "rmdir p/d")
	w.doEach(0, many, "rm p/f%d")
	w.do("rmdir p")
	w.tamper("p/d/theirs", "T")
	w.tamper("p/f1", "changed")
	w.pull()
	w.uploadSame()
	assert.Equal(t, strings.Join(w.localBelow("p"), " "), "p/d/ p/d/theirs: T p/f1: changed", "p")
}

// What is under way in a directory while one below it comes back ends where the
// backend has it by then.
func TestDirectoryComesBackWhileADeletionIsUnderWay(t *testing.T) {
	for _, happens := range []bool{false, true} {
		t.Run(fmt.Sprint("happens ", happens), func(t *testing.T) {
			w := newWorld(t, unwaited, holding("p/f", "F", "p/d/a", "A", "q", "Q"))
			w.do("rm p/d/a")
			w.upload()
			p := w.walk("p")
			reached, open := w.gate(providers.MethodDelete)
			w.do("rm p/f")
			first := async(func() { w.upload() })
			<-reached
			w.do("rmdir p/d", "rmdir p")
			w.v.Forget(p, 1000)
			w.tamper("p/d/theirs", "T")
			done := async(func() { w.upload() })
			w.until(func() bool { return w.walk("p") != 0 })
			if happens {
				w.ok(w.p.Tamper(at("p/f"), nil))
			}
			open()
			<-first
			<-done
			w.same()
			w.backend("p/", "p/d/", "p/d/theirs: T", "q: Q")
			w.untilLocked(func(locked *View) bool { // nothing is left of the one that was removed
				return locked.Inode(table.Ino(p)) == nil
			})
		})
	}
}

// A file that lost its name to a pull while it was open, and is written then, is
// found in the directory that came back, or in the root if none did.
func TestClaimInARemovedDirectory(t *testing.T) {
	for theirs, want := range map[string]string{
		"d/theirs": "d/ d/f: ours d/theirs: T q: Q",
		"theirs":   "f: ours q: Q theirs: T",
	} {
		t.Run(theirs, func(t *testing.T) {
			w := newScene(t, unwaited, holding("d/f", "F", "q", "Q"))
			w.list("d")
			d := w.walk("d")
			o := w.open("d/f", syscall.O_RDWR)
			w.gonePath("d/f")
			w.pull()
			w.do("rmdir d")
			w.tamper(theirs, "T")
			w.upload()
			w.pull()
			w.writeLast(o, "ours", 0)
			assert.Equal(t, strings.Join(w.here(), " "), want, "here")
			w.uploadSame()
			w.forgotten(d)
		})
	}
}

// A directory that was removed and made anew here is the one that the backend
// has: what others have put into that meanwhile is found, and not in the way.
func TestMadeAnewWithTheirs(t *testing.T) {
	eachStore(t, func(t *testing.T, store func(*world, *Options)) {
		w := newScene(t, unwaited, store, has("p/d/a", "A", "q", "Q"))
		if w.repo != nil {
			return // what others do in a clone comes with a pull
		}
		w.list("p/d")
		w.do("rm p/d/a", "rmdir p/d", "rmdir p", "mkdir p", "mkdir p/d", "put p/d/b ours")
		w.tamper("p/d/b", "theirs")
		w.tamper("p/d/c", "theirs")
		w.commit()
		w.upload()
		w.pull()
		w.same()
		w.sees("p/", "p/d/", "p/d/b: theirs", "p/d/b.conflict-"+short("ours")+": ours", "p/d/c: theirs", "q: Q")
	})
}

// A directory whose name something else has by now comes back beside it.
func TestDirectoryComesBackBeside(t *testing.T) {
	t.Parallel()
	for what, script := range map[string]string{"a file": "put p/d file", "a directory": "mv e p/d"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachStore(t, func(t *testing.T, store func(*world, *Options)) {
				w := newScene(t, unwaited, store, has("p/d/a", "A", "e/x", "X", "q", "Q"))
				if w.repo != nil || w.o.Policy.Atomic {
					return // what others do in a clone comes with a pull
				}
				w.list("p/d")
				w.list("e")
				d := w.walk("p/d")
				w.do("rm p/d/a", "rmdir p/d", script)
				w.tamper("p/d/theirs", "T")
				w.commit()
				w.upload()
				w.pull()
				w.uploadSame()
				w.isDead("d", d, "theirs", "a")
				all := strings.Join(w.here(), " ")
				for _, want := range map[string][]string{
					"a file":      {"p/d: file", "p/d.1/theirs: T", "e/x: X"},
					"a directory": {"p/d/x: X", "/theirs: T"},
				}[what] {
					assert.Contains(t, all, want)
				}
			})
		})
	}
}
