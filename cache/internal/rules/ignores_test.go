package rules

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/ignore"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// world is a tree with what was learned of its ignore files.
type world struct {
	*testing.T
	tree *tree.Tree
	g    *Ignores
	inos map[string]table.Ino
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tab := assert.Of(table.Open(t.TempDir(), table.Options{})).OK(t)
	t.Cleanup(func() { tab.Close() })
	w := &world{t, tree.New(tab, tree.Options{}), New(".ignore"), map[string]table.Ino{"": table.Root}}
	w.do(func(tx *tree.Tx) { tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true}) })
	return w
}

func (w *world) do(f func(tx *tree.Tx)) {
	w.Helper()
	assert.OK(w, w.tree.Update(func(tx *tree.Tx) error {
		f(tx)
		return nil
	}, nil))
}

func (w *world) see(f func(v *tree.View)) {
	f(w.tree.Lock())
	w.tree.Unlock()
}

func (w *world) link(path string) table.Link {
	dir, name := "", path
	if i := strings.LastIndex(path, "/"); i >= 0 {
		dir, name = path[:i], path[i+1:]
	}
	return table.Link{Dir: w.inos[dir], Name: name}
}

// makes makes a name, a directory if it ends in a slash: of the remote too with an "=",
// dirty otherwise.
func (w *world) makes(paths ...string) {
	w.Helper()
	w.do(func(tx *tree.Tx) {
		for _, path := range paths {
			path, remote := strings.CutSuffix(path, "=")
			path, dir := strings.CutSuffix(path, "/")
			n, kind := &table.Inode{Mode: syscall.S_IFREG, ContentVersion: 1}, providers.KindFile
			if dir {
				n, kind = &table.Inode{Mode: syscall.S_IFDIR, Loaded: true}, providers.KindDir
			}
			ino := tx.Alloc()
			tx.Put(ino, n)
			rec := table.Name{Ino: ino}
			if remote {
				rec.Remote = &table.Remote{Ino: ino, Kind: kind}
			} else {
				rec.Seq = tx.NextSeq()
			}
			tx.SetName(w.link(path), rec)
			w.inos[path] = ino
			if strings.HasSuffix(path, ".ignore") {
				w.g.Changed(w.link(path).Dir)
			}
		}
	})
}

// learns has the ignore file of a directory say what, as of the version that it has.
func (w *world) learns(dir, what string) {
	w.Helper()
	w.do(func(tx *tree.Tx) {
		ino, version, _ := w.g.FileOf(tx, w.inos[dir])
		r := Rules{Ino: ino, Version: version}
		if ino != 0 {
			r.Rules = ignore.Parse([]byte(what))
		}
		w.g.Learn(tx, w.inos[dir], r)
	})
}

// changes writes to the ignore file of a directory.
func (w *world) changes(dir string) {
	w.Helper()
	w.do(func(tx *tree.Tx) { tx.Edit(w.inos[strings.TrimPrefix(dir+"/.ignore", "/")]).ContentVersion++ })
}

func (w *world) ignored(path string, dir bool) (is, sure bool) {
	w.see(func(v *tree.View) { is, sure = w.g.Ignored(v, w.link(path), dir) })
	return is, sure
}

func (w *world) paths(dirs []table.Ino) (paths []string) {
	for path, ino := range w.inos {
		if slices.Contains(dirs, ino) {
			paths = append(paths, "/"+path)
		}
	}
	slices.Sort(paths)
	return paths
}

// What rules say is sure once all on the way to a name were learned as they are.
func TestIgnored(t *testing.T) {
	w := newWorld(t)
	w.makes(".ignore", "d/", "d/.ignore", "e/")
	is, sure := w.ignored("f.o", false)
	assert.Equal(t, fmt.Sprint(is, sure), "false false", "nothing was learned")
	w.learns("", "*.o\n/d/b/\n")
	w.learns("d", "!keep.o\n")
	for path, want := range map[string]bool{"f.o": true, "f.c": false, "d/f.o": true, "d/keep.o": false} {
		is, sure := w.ignored(path, false)
		assert.Equal(t, fmt.Sprint(is, sure), fmt.Sprint(want, true), path)
	}
	is, _ = w.ignored("d/b", true)
	assert.True(t, is, "a directory that a rule names is not ignored")
	is, _ = w.ignored("d/b", false)
	assert.False(t, is, "a file is ignored by a rule for directories")

	w.learns("e", "")
	w.changes("")
	_, sure = w.ignored("e/f.o", false)
	assert.False(t, sure, "rules of before are taken for those of now")
	is, sure = w.ignored("gone/f.o", false)
	assert.Equal(t, fmt.Sprint(is, sure), "false true", "below what is nowhere")
}

// Before a commit the rules of the root, those that had been learned and are others, and
// those above what is new have to be known; what the remote has asks for none.
func TestUnlearned(t *testing.T) {
	w := newWorld(t)
	unlearned := func(want ...string) {
		t.Helper()
		w.see(func(v *tree.View) { assert.Slice(t, w.paths(w.g.Unlearned(v)), want) })
	}
	w.makes("old/=", "old/.ignore=", "d/", "d/s/", "d/s/f")
	unlearned() // without an ignore file there is nothing to learn
	w.makes(".ignore=", "d/.ignore=", "d/s/.ignore=")
	unlearned("/", "/d", "/d/s")
	for _, dir := range []string{"", "d/s"} {
		w.learns(dir, "")
	}
	unlearned("/d")
	w.learns("d", "*.o")
	unlearned()
	w.changes("d")
	unlearned("/d")
}

// Where other rules count than before, or such as take back others, all below is looked
// at again, until that was done; rules that were read slowly change nothing.
func TestLearn(t *testing.T) {
	w := newWorld(t)
	look := func(want ...string) {
		t.Helper()
		w.see(func(v *tree.View) { assert.Slice(t, w.paths(ToLookBelow(v)), want) })
	}
	w.makes(".ignore=", "d/=")
	w.learns("", "*.o")
	look()
	w.makes("d/.ignore=")
	w.learns("d", "!f.o")
	look("/d")
	w.do(func(tx *tree.Tx) { Looked(tx, w.inos["d"]) })
	look()

	old := w.g.learned[table.Root]
	w.changes("")
	w.learns("", "*.a")
	look("/")
	w.do(func(tx *tree.Tx) {
		Looked(tx, table.Root)
		w.g.Learn(tx, table.Root, old)
	})
	look()
	is, sure := w.ignored("f.o", false)
	assert.Equal(t, fmt.Sprint(is, sure), "false true", "the rules of before count again")
}

// A directory that is renamed has nothing looked at where the rules say the same of it.
func TestSame(t *testing.T) {
	for rules, want := range map[string]bool{"": true, "*.o": true, "/d/f": false, "/d/": false, "e/f": false} {
		t.Run(rules, func(t *testing.T) {
			w := newWorld(t)
			w.makes(".ignore", "d/")
			w.learns("", rules)
			w.see(func(v *tree.View) { assert.Equal(t, w.g.Same(v, w.link("d"), w.link("e")), want) })
			w.changes("")
			w.see(func(v *tree.View) {
				assert.False(t, w.g.Same(v, w.link("d"), w.link("e")), "rules that were not learned say the same")
			})
		})
	}
}

// What was wanted is told once, as long as it was not learned.
func TestWanted(t *testing.T) {
	w := newWorld(t)
	w.makes(".ignore", "d/", "d/.ignore", "d/s/", "d/s/.ignore")
	wanted := func(want ...string) {
		t.Helper()
		w.see(func(v *tree.View) { assert.Slice(t, w.paths(w.g.Wanted(v)), want) })
	}
	wanted("/")
	w.learns("d", "")
	w.see(func(v *tree.View) { w.g.Want(v, w.link("d/s/f")) })
	wanted("/", "/d/s")
	wanted()
}

// A snapshot goes on with what was learned, and what it finds is not the volume's.
func TestClone(t *testing.T) {
	w := newWorld(t)
	w.makes(".ignore")
	w.learns("", "*.o")
	c := w.g.Clone()
	w.changes("")
	w.learns("", "*.a")
	assert.True(t, c.learned[table.Root].Version == 1 && w.g.learned[table.Root].Version == 2, "a snapshot learns")
}

// What is moved below directories that the remote does not have takes them along.
func TestCarriers(t *testing.T) {
	w := newWorld(t)
	w.makes("a/", "a/b/", "x/", "moved/=")
	w.do(func(tx *tree.Tx) {
		rec := tx.Record(w.link("moved"))
		ino := rec.Ino
		rec.Ino = 0
		tx.SetName(w.link("moved"), rec)
		tx.SetName(w.link("a/b/moved"), table.Name{Ino: ino, Seq: tx.NextSeq()})
		a := tx.Record(w.link("a"))
		a.Local = true
		tx.SetName(w.link("a"), a)
	})
	w.see(func(v *tree.View) {
		c, stay := CarriersOf(v)
		assert.True(t, c.Has(w.inos["a"]) && c.Has(w.inos["a/b"]) && !c.Has(w.inos["x"]), "carriers are", c)
		assert.Slice(t, stay, []table.Link{w.link("a")})
	})
}
