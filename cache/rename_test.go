package cache

import (
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// The way editors save: the new content takes the name in one step.
func TestSaveByRename(t *testing.T) {
	var c calls
	w := newWorld(t, recording(&c), holding("f", "old"))
	w.ok(w.put("f.tmp", "new"))
	w.ok(w.rename("f.tmp", "f"))
	w.settle()
	if got := c.changes(); got != "write f.tmp, move f.tmp" {
		t.Errorf("the backend did %q", got)
	}
	w.backend("f: new")

	o := w.create("g.tmp") // renamed before it is closed
	w.write(o, "newer", 0)
	w.ok(w.rename("g.tmp", "f"))
	w.settle()
	w.backend("f: new")
	w.ok(w.shut(o))
	if got := c.changes(); got != "write f" {
		t.Errorf("the backend did %q", got)
	}
	w.backend("f: newer")
	w.noProblems()
}

// A rename of a directory changes as much whether one file is below or many.
func TestRenameIsOneChange(t *testing.T) {
	cost := func(files int) int {
		w := newWorld(t)
		w.mkdir("d")
		for i := range files {
			_, err := w.v.Mkdir(me, w.walk("d"), fmt.Sprint(i), 0o755)
			w.ok(err)
		}
		w.settle()
		counter := &countingTable{table: w.v.table}
		w.v.mu.Lock()
		w.v.table = counter
		w.v.mu.Unlock()
		w.ok(w.v.Rename(me, fs.RootIno, "d", fs.RootIno, "e", 0))
		w.v.mu.Lock()
		defer w.v.mu.Unlock()
		return counter.saves
	}
	if one, many := cost(1), cost(200); one == 0 || many > one+2 { // the worker saves too
		t.Errorf("%d changes with one entry, %d with 200", one, many)
	}
}

type countingTable struct {
	table
	saves int
}

func (c *countingTable) save(ino fs.Ino, n *node) { c.saves++; c.table.save(ino, n) }

// backends of less and less ability.
var backends = []struct {
	name string
	hide providers.Ability
}{
	{"moves", 0},
	{"copies", providers.AbilityMove},
	{"neither", providers.AbilityMove | providers.AbilityCopy | providers.AbilityAttr},
}

// Trees move with what is open, unsaved, linked and not yet listed, on every
// kind of backend, also when every answer is lost once.
func TestRenameTree(t *testing.T) {
	for _, b := range backends {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lost=%v", b.name, lost), func(t *testing.T) {
				w := newWorld(t, func(w *world, o *Options) {
					w.p = memory.New(memory.Options{})
					holding("d/a", "1", "d/sub/b", "2", "d/sub/c", "3", "x/y", "4")(w, o)
				})
				w.v.p = providers.Wrap(w.v.p, providers.WrapOptions{Hide: b.hide})
				o := w.open("d/a", syscall.O_RDWR)
				w.mkdir("t")
				if lost {
					for _, m := range []providers.Method{providers.MethodMkdir} {
						w.faults.Queue(m, providertest.Fault{After: providers.ErrUnavailable})
					}
					if b.hide == 0 {
						w.faults.Queue(providers.MethodMove, providertest.Fault{After: providers.ErrUnavailable})
					} else {
						w.faults.Queue(providers.MethodDelete, providertest.Fault{After: providers.ErrUnavailable},
							providertest.Fault{Before: providers.ErrUnavailable})
					}
				}
				w.ok(w.rename("d", "t/moved"))
				w.write(o, "one", 0)
				w.ok(w.shut(o))
				if got := w.get("t/moved/sub/b"); got != "2" {
					t.Errorf("a file that was listed after the rename has %q", got)
				}
				w.ok(w.put("t/moved/sub/b", "two"))
				w.ok(w.rename("t/moved/sub", "x/sub"))
				w.ok(w.unlink("x/sub/c"))
				w.settle()
				w.backend("t/", "t/moved/", "t/moved/a: one", "x/", "x/sub/", "x/sub/b: two", "x/y: 4")
				w.noProblems()
			})
		}
	}
}

// Two names change places, whatever of them the backend has.
func TestExchange(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			w := newWorld(t, holding("a", "1", "d/b", "2", "e/c/x", "3"))
			w.v.p = providers.Wrap(w.v.p, providers.WrapOptions{Hide: b.hide})
			w.walk("d/b")
			w.walk("e/c")
			if b.hide == 0 {
				w.faults.Queue(providers.MethodMove, providertest.Fault{After: providers.ErrUnavailable},
					providertest.Fault{After: providers.ErrUnavailable}, providertest.Fault{Before: providers.ErrUnavailable})
			}
			w.ok(w.exchange("a", "d/b"))
			w.ok(w.exchange("d/b", "e/c")) // a file and a directory
			w.settle()
			w.backend("a: 2", "d/", "d/b/", "d/b/x: 3", "e/", "e/c: 1")
			o := w.create("new")
			w.write(o, "4", 0)
			w.ok(w.exchange("new", "a")) // one was never sent
			w.ok(w.shut(o))
			w.settle()
			w.backend("a: 4", "d/", "d/b/", "d/b/x: 3", "e/", "e/c: 1", "new: 2")
			if a, err := w.v.Attr(me, w.walk("d"), nil); err != nil || a.Nlink != 3 {
				t.Errorf("d has %d links, %v", a.Nlink, err)
			}
			w.noProblems()
		})
	}
}

func (w *world) exchange(a, b string) error {
	w.Helper()
	dir, name := w.dirOf(a)
	newDir, newName := w.dirOf(b)
	return w.v.Rename(me, dir, name, newDir, newName, unix.RENAME_EXCHANGE)
}

// What another writer changed is not removed: the name comes back.
func TestRefusedRemovalComesBack(t *testing.T) {
	w := newWorld(t, holding("f", "one", "d/e", "1"))
	w.walk("d/e")
	w.tamper("f", "theirs")
	w.ok(w.unlink("f"))
	w.settle()
	if got := w.get("f"); got != "theirs" {
		t.Errorf("got %q", got)
	}
	w.ok(w.unlink("d/e"))
	w.settle()
	w.tamper("d/new", "x")
	w.ok(w.v.Rmdir(me, fs.RootIno, "d"))
	w.settle()
	if got := w.get("d/new"); got != "x" {
		t.Errorf("got %q", got)
	}
	w.backend("d/", "d/new: x", "f: theirs")
	if n := len(w.v.Status().Problems); n != 2 {
		t.Errorf("%d problems", n)
	}
}

// A rename whose source or target another writer changed loses nothing.
func TestRefusedRename(t *testing.T) {
	for _, c := range []struct {
		name, tampered string
		fetched        bool
		tree, backend  []string
	}{
		{"source, not here", "a", false,
			[]string{"a: theirs"}, []string{"a: theirs"}},
		{"source, here", "a", true,
			[]string{"a: theirs", "b: ours"}, []string{"a: theirs", "b: ours"}},
		{"target, here", "b", true,
			[]string{"a: ours", "b: ours"}, []string{"a: ours", "b: theirs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, holding("a", "ours"))
			if c.fetched {
				w.get("a")
			}
			w.walk("a")
			w.tamper(c.tampered, "theirs")
			w.ok(w.rename("a", "b"))
			w.settle()
			w.settle()
			var tree []string
			for _, name := range w.list("")[2:] {
				tree = append(tree, name+": "+w.get(name))
			}
			if fmt.Sprint(sorted(tree)) != fmt.Sprint(c.tree) {
				t.Errorf("the tree has %q, want %q", tree, c.tree)
			}
			w.backend(c.backend...)
			if len(w.v.Status().Problems) == 0 {
				t.Error("nobody is told")
			}
		})
	}
}

// A directory that moves takes along what another writer changed in it, and
// that still counts as changed.
func TestRenameTreeKeepsConflicts(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			w := newWorld(t, holding("d/f", "base"))
			w.v.p = providers.Wrap(w.v.p, providers.WrapOptions{Hide: b.hide})
			o := w.open("d/f", syscall.O_RDWR)
			w.tamper("d/f", "theirs")
			w.ok(w.rename("d", "e"))
			w.settle()
			w.write(o, "ours", 0)
			w.is(w.shut(o), fs.ErrConflict)
			w.backend("e/", "e/f: theirs")
		})
	}
}
