package commit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// scene is a tree in memory of which sets are made. Inodes have the numbers that the test
// gives them, and names are in a directory of the test's or the root.
type scene struct {
	*testing.T
	disk *vfs.MemFS
	tree *tree.Tree
	was  Moment // but for what is of the tree
	open map[table.Ino]bool
}

func newScene(t *testing.T) *scene {
	t.Helper()
	disk := vfs.NewCrashableMem()
	tab := assert.Of(table.Open("/tree", table.Options{FS: disk, Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	s := &scene{T: t, disk: disk, tree: tree.New(tab, tree.Options{}), open: map[table.Ino]bool{}}
	s.was = Moment{
		Planner:   upload.NewPlanner(upload.Options{}),
		IsWriting: func(rec table.Name) bool { return s.open[rec.Ino] },
		Held:      map[table.Link]struct{}{},
		Guard:     &Guard{MaxFile: 100, MaxCommit: 1000},
		Found:     Findings{},
		AttrOf:    func(*table.Inode) providers.Attr { return providers.Attr{} },
		Progress:  func(int, int) {},
	}
	s.does(func(tx *tree.Tx) { tx.Put(table.Root, &table.Inode{Mode: dir, Loaded: true}) })
	return s
}

const (
	file = syscall.S_IFREG
	dir  = syscall.S_IFDIR
)

func (s *scene) does(f func(*tree.Tx)) {
	s.Helper()
	assert.OK(s, s.tree.Update(func(tx *tree.Tx) error { f(tx); return nil }, nil))
}

// has makes an inode, with a name at the remote (none: ""), as it is locally too.
func (s *scene) has(ino table.Ino, mode uint32, remote table.Link) {
	s.does(func(tx *tree.Tx) {
		n := &table.Inode{Mode: mode, ContentVersion: 1, Size: 10, Loaded: true}
		tx.Put(ino, n)
		if remote.Name == "" {
			return
		}
		kind := providers.KindFile
		if n.IsDir() {
			kind = providers.KindDir
		}
		name(tx, remote, ino)
		tx.SetRemote(remote, &table.Remote{Ino: ino, Kind: kind, ContentVersion: 1})
	})
}

// makes is has of an inode with a local name alone.
func (s *scene) makes(ino table.Ino, mode uint32, local table.Link) {
	s.has(ino, mode, table.Link{})
	s.does(func(tx *tree.Tx) { name(tx, local, ino) })
}

// name has a name stand for an inode locally, or for none (0).
func name(tx *tree.Tx, l table.Link, ino table.Ino) {
	rec := tx.Record(l)
	rec.Ino = ino
	tx.SetName(l, rec)
	tx.Mark(l)
}

func (s *scene) moves(from, to table.Link) {
	s.does(func(tx *tree.Tx) {
		ino := tx.Record(from).Ino
		name(tx, from, 0)
		name(tx, to, ino)
	})
}

func (s *scene) changes(ino table.Ino) {
	s.does(func(tx *tree.Tx) { tx.ContentChanged(ino, 1, table.Time{}) })
}

func (s *scene) removes(l table.Link) { s.does(func(tx *tree.Tx) { name(tx, l, 0) }) }

func at(dir table.Ino, name string) table.Link { return table.Link{Dir: dir, Name: name} }

func root(name string) table.Link { return at(table.Root, name) }

// collect makes a set of all that differs, and calls look before it is done.
func (s *scene) collect(look func(*Set)) {
	s.Helper()
	v := s.tree.Lock()
	defer s.tree.Unlock()
	was := s.was
	was.View = v
	set := assert.Of(Collect(s.Context(), &was, ^uint64(0))).OK(s)
	defer set.Made()
	look(set)
}

// changes are those of a set, as words.
func changes(s *Set) string {
	var all []string
	for i, c := range s.Changes {
		text := "put "
		switch {
		case c.Delete:
			text = "rm "
		case !c.From.IsRoot():
			text = "mv " + c.From.String() + " "
		case c.Dir:
			text = "mkdir "
		}
		if text += c.Locator.String(); s.Bodies[i] != nil {
			text += " with content"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func left(s *Set) string {
	var all []string
	for _, l := range s.Left {
		all = append(all, l.Name)
	}
	return strings.Join(all, " ")
}

// A set says in terms of the remote what has become of names, and leaves out what depends on
// something that cannot go.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		what       string
		make       func(*scene)
		want, left string
	}{
		{"nothing", func(s *scene) { s.has(10, file, root("f")) }, "", ""},
		{"a new file", func(s *scene) { s.makes(10, file, root("f")) }, "put f with content", ""},
		{"a new directory, where there are none without entries", func(s *scene) { s.makes(10, dir, root("d")) }, "", ""},
		{"a new directory", func(s *scene) { s.was.Capabilities.EmptyDirs = true; s.makes(10, dir, root("d")) }, "mkdir d", ""},
		{"a file in a new directory", func(s *scene) { s.makes(10, dir, root("d")); s.makes(11, file, at(10, "f")) }, "put d/f with content", ""},
		{"a file that was removed", func(s *scene) { s.has(10, file, root("f")); s.removes(root("f")) }, "rm f", ""},
		{"a file that was renamed", func(s *scene) { s.has(10, file, root("a")); s.moves(root("a"), root("b")) }, "rm a, mv a b", ""},
		{"a file that was renamed and changed", func(s *scene) {
			s.has(10, file, root("a"))
			s.moves(root("a"), root("b"))
			s.changes(10)
		}, "rm a, put b with content", ""},
		{"a directory that was renamed", func(s *scene) {
			s.has(10, dir, root("a"))
			s.has(11, file, at(10, "f"))
			s.moves(root("a"), root("b"))
			s.makes(12, file, at(10, "n"))
		}, "rm a, mv a b, put b/n with content", ""},
		{"a file in the place of another", func(s *scene) {
			s.has(10, file, root("f"))
			s.removes(root("f"))
			s.makes(11, file, root("f"))
		}, "put f with content", ""},
		{"a file that a program is writing", func(s *scene) { s.makes(10, file, root("f")); s.open[10] = true }, "", "f"},
		{"what is in a directory that is held back", func(s *scene) {
			s.makes(10, dir, root("d"))
			s.makes(11, file, at(10, "f"))
			s.makes(12, file, root("g"))
			s.was.Held[root("d")] = struct{}{}
		}, "put g with content", "d f"},
		{"half of an exchange is held back", func(s *scene) {
			s.has(10, dir, root("a"))
			s.has(11, dir, root("b"))
			s.does(func(tx *tree.Tx) { name(tx, root("a"), 11); name(tx, root("b"), 10) })
			s.was.Held[root("b")] = struct{}{}
		}, "", "a b"},
		{"a directory with something in it that is held back", func(s *scene) {
			s.has(10, dir, root("d"))
			s.has(11, file, at(10, "f"))
			s.removes(at(10, "f"))
			s.removes(root("d"))
			s.was.Held[at(10, "f")] = struct{}{}
		}, "", "f d"},
		{"content that was lost in part", func(s *scene) {
			s.makes(10, file, root("f"))
			s.does(func(tx *tree.Tx) { tx.Edit(10).Suspect = true })
		}, "", "f"},
	} {
		s := newScene(t)
		c.make(s)
		s.collect(func(set *Set) {
			assert.Equal(t, changes(set), c.want, c.what)
			assert.Equal(t, left(set), c.left, c.what+", left out")
		})
	}
}

// Each change counts on just what is known of its name.
func TestConditions(t *testing.T) {
	s := newScene(t)
	version := providers.Version{ETag: "1"}
	for i, name := range []string{"changed", "gone", "replaced"} {
		ino := table.Ino(10 + i)
		s.has(ino, file, root(name))
		s.does(func(tx *tree.Tx) {
			tx.SetRemote(root(name), &table.Remote{Ino: ino, Kind: providers.KindFile, ContentVersion: 1, Version: version})
		})
	}
	s.changes(10)
	s.removes(root("gone"))
	s.removes(root("replaced"))
	s.makes(13, file, root("replaced"))
	s.makes(14, file, root("new"))
	s.collect(func(set *Set) {
		got := map[string]providers.Condition{}
		for _, c := range set.Changes {
			got[c.Locator.String()] = c.If
		}
		assert.Equal(t, len(got), 4, got)
		for name, c := range got {
			want := providers.IfVersion(version)
			if name == "new" {
				want = providers.IfAbsent()
			}
			assert.Equal(t, c, want, name)
		}
	})
}

// What the guard stops is left out, with its reason, and a file over the limit does not
// count for the others.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		what         string
		asks         bool // about larger files
		want, reason string
	}{
		{"larger files do not go", false, "10 13", "f11: with its 21 bytes the commit would bring more than 30 bytes: it goes with a later one; " +
			"f12: 101 bytes, and a commit takes files of up to 100 bytes: make it smaller, keep it elsewhere, or exclude or ignore it; " +
			"f14: with its 1 bytes the commit would bring more than 30 bytes: it goes with a later one"},
		{"larger files go elsewhere", true, "10 12 13", "f11: with its 21 bytes the commit would bring more than 30 bytes: it goes with a later one; " +
			"f14: with its 1 bytes the commit would bring more than 30 bytes: it goes with a later one"},
	} {
		s := newScene(t)
		s.was.Guard = &Guard{MaxFile: 1000, MaxCommit: 30}
		s.was.Guard.Limit(providers.Capabilities{MaxSize: 100, LargerSome: c.asks})
		for i, size := range []int64{10, 21, 101, 20, 1} {
			ino := table.Ino(10 + i)
			s.makes(ino, file, root(fmt.Sprint("f", ino)))
			s.does(func(tx *tree.Tx) { tx.Edit(ino).Size = size })
		}
		s.collect(func(set *Set) {
			var goes, stopped []string
			for _, p := range set.Order {
				goes = append(goes, fmt.Sprint(p.Ino))
			}
			for _, n := range set.Stopped {
				stopped = append(stopped, n.Link.Name+": "+n.Err.Error())
				assert.True(t, pending.RefusalOf(n.Err) != nil && !pending.RefusalOf(n.Err).Secret, n.Link.Name)
			}
			assert.Equal(t, strings.Join(goes, " "), c.want, c.what)
			assert.Equal(t, strings.Join(stopped, "; "), c.reason, c.what)
		})
	}
}

// stubRules ignore names that begin with a dot, but know nothing of "?".
type stubRules struct{}

func (stubRules) Carriers() (rules.Carriers, []table.Link) { return nil, nil }

func (r stubRules) Sorted(l table.Link, _ table.Name, n *table.Inode, _ rules.Carriers) (stays, ok bool) {
	return l.Name[0] == '.', l.Name[0] != '?' && l.Name != ".far"
}

func (stubRules) IsLearned(l table.Link, _ *table.Inode) bool { return l.Name[0] != '?' }

// A name that is ignored is to be marked so; where nothing can be said yet, the set is to be
// made anew, once what is lacking is there.
func TestIgnored(t *testing.T) {
	s := newScene(t)
	s.was.Rules = stubRules{}
	for i, name := range []string{"a", ".b", "?", ".far"} {
		s.makes(table.Ino(10+i), file, root(name))
	}
	s.collect(func(set *Set) {
		assert.Equal(t, changes(set), "put a with content")
		_, stays := set.Stays[root(".b")]
		assert.True(t, stays && len(set.Stays) == 1, "what stays:", set.Stays)
		assert.True(t, set.Unsure, "all rules are known")
		assert.Slice(t, set.Bring, []table.Link{root(".far")})
	})
}

// What is no more takes out what depends on it; the message and an error of the remote
// name what goes.
func TestWithoutMessageAndAbout(t *testing.T) {
	s := newScene(t)
	s.makes(10, dir, root("d"))
	s.makes(11, file, at(10, "f"))
	for i, name := range []string{"a", "b", "c"} {
		s.makes(table.Ino(12+i), file, root(name))
	}
	s.collect(func(set *Set) {
		assert.Equal(t, set.Message(), "a, b and 3 more")
		where := assert.Of(providers.ParseLocator("d/f")).OK(t)
		about := set.About(fmt.Errorf("it failed: %w", &providers.Error{Locator: where, Err: errors.New("no")}))
		assert.True(t, len(about) == 1 && about[0].Link == at(10, "f"), "about", about)
		assert.Equal(t, len(set.About(context.Canceled)), 0, "names of an error about none")
		set.Without([]table.Link{root("d")})
		assert.Equal(t, changes(set), "put a with content, put b with content, put c with content")
		assert.Equal(t, set.Message(), "a, b, c")
	})
}

// What has another name is not deleted, nor what comes back as the same content.
func TestDeletions(t *testing.T) {
	s := newScene(t)
	s.has(10, file, root("gone"))
	s.has(11, file, root("moved"))
	s.has(12, dir, root("d"))
	s.has(13, file, at(12, "x"))
	s.removes(root("gone"))
	s.moves(root("moved"), at(12, "moved"))
	s.removes(at(12, "x"))
	s.makes(14, file, root("new"))
	s.collect(func(set *Set) {
		all, inRoot, made := set.Deletions()
		assert.Equal(t, fmt.Sprint(all, inRoot, made), "2 2 1", "deleted, of the root, made there")
		set.was.Cleared = set.was.Record(root("gone")).Seq
		all, inRoot, made = set.Deletions()
		assert.Equal(t, fmt.Sprint(all, inRoot, made), "1 2 1", "but for one that was confirmed")
		set.was.Cleared = math.MaxUint64
		all, inRoot, made = set.Deletions()
		assert.Equal(t, fmt.Sprint(all, inRoot, made), "0 0 1", "all were confirmed")
	})
}

// What is kept of a set until its outcome is known is the same as ever: another version may
// have written it.
func TestPlannedIsKept(t *testing.T) {
	p := &Planned{Link: root("f"), Ino: 10, Kind: providers.KindFile, Gen: 2, AttrGen: 3, Index: -1, Before: "e", After: "f",
		Rec: table.Name{Ino: 10}, Inode: &table.Inode{}, Last: true, Size: 1, Writing: true, Loose: true}
	data := assert.Of(json.Marshal(p)).OK(t)
	var back Planned
	assert.OK(t, json.Unmarshal(data, &back))
	for _, field := range []string{"Rec", "Inode", "BeforeAt", "Last", "Size", "Writing", "Loose"} {
		assert.False(t, strings.Contains(string(data), `"`+field+`"`), field, "is kept")
	}
	again := assert.Of(json.Marshal(&back)).OK(t)
	assert.Equal(t, string(again), string(data))
	assert.Equal(t, back.After, "f")
}
