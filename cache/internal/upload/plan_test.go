package upload

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// scene is a planner over a tree in memory.
type scene struct {
	*testing.T
	tree    *tree.Tree
	p       *Planner
	busy    map[table.Link]*Operation
	waiting map[table.Link]bool
	open    map[table.Ino]bool
	noted   func(tx *tree.Tx, own bool) // called at the end of transactions; nil: nothing
	ids     int
}

const (
	canMove = providers.AbilityMove
	canCopy = providers.AbilityCopy
)

func newScene(t *testing.T, can providers.Ability) *scene {
	t.Helper()
	return newSceneWith(t, providers.Capabilities{Abilities: can, EmptyDirs: true})
}

func newSceneWith(t *testing.T, caps providers.Capabilities) *scene {
	t.Helper()
	tab := assert.Of(table.Open("/tree", table.Options{FS: vfs.NewMem(), Strict: true})).OK(t)
	t.Cleanup(func() { tab.Close() })
	s := &scene{T: t, tree: tree.New(tab, tree.Options{Attributes: caps.Attributes != 0}), busy: map[table.Link]*Operation{},
		waiting: map[table.Link]bool{}, open: map[table.Ino]bool{}}
	s.p = NewPlanner(Options{
		Capabilities: caps,
		Jobs:         s,
		IsOpen:       func(_ *tree.View, ino table.Ino, _ *table.Inode) bool { return s.open[ino] },
		NewID:        s.newID,
	})
	s.does(func(tx *tree.Tx) {
		tx.Put(table.Root, &table.Inode{Mode: syscall.S_IFDIR, Loaded: true})
	})
	return s
}

func (s *scene) newID(*tree.View) string { s.ids++; return "id" + strconv.Itoa(s.ids) }

func (s *scene) Busy(_ *tree.View, l table.Link) *Operation { return s.busy[l] }

func (s *scene) IsWaiting(_ *tree.View, l table.Link) bool { return s.waiting[l] }

func (s *scene) does(f func(*tree.Tx)) {
	s.Helper()
	assert.OK(s, s.update(false, func(tx *tree.Tx) error { f(tx); return nil }))
}

func (s *scene) update(own bool, f func(*tree.Tx) error) error {
	return s.tree.Update(func(tx *tree.Tx) error {
		err := f(tx)
		if err == nil && s.noted != nil {
			s.noted(tx, own)
		}
		return err
	}, nil)
}

// has makes an inode, with a name locally, at the remote, or both ("": not there). A
// directory's names are all known.
func (s *scene) has(ino table.Ino, mode uint32, local, remote table.Link) {
	s.does(func(tx *tree.Tx) {
		n := &table.Inode{Mode: mode, ContentVersion: 1, Size: 1, Loaded: true}
		tx.Put(ino, n)
		if remote.Name != "" {
			kind := providers.KindFile
			if n.IsDir() {
				kind = providers.KindDir
			}
			tx.SetRemote(remote, &table.Remote{Ino: ino, Kind: kind, ContentVersion: 1})
		}
		if local.Name != "" {
			name(tx, local, ino)
		}
	})
}

// name has a name stand for an inode, or for none (0).
func name(tx *tree.Tx, l table.Link, ino table.Ino) {
	rec := tx.Record(l)
	if n := tx.Edit(rec.Ino); n != nil {
		links := n.Links[:0:0]
		for _, other := range n.Links {
			if other != l {
				links = append(links, other)
			}
		}
		n.Links = links
	}
	rec.Ino = ino
	tx.SetName(l, rec)
	if n := tx.Edit(ino); n != nil {
		n.Links = append(n.Links, l)
	}
	tx.Mark(l)
}

func at(dir table.Ino, name string) table.Link { return table.Link{Dir: dir, Name: name} }

func root(name string) table.Link { return at(table.Root, name) }

// plan is what the planner says of a name, as words: the verdict, or an operation.
func (s *scene) plan(l table.Link) string {
	v := s.tree.Lock()
	defer s.tree.Unlock()
	verdict, op, cut := s.p.Plan(v, l)
	text := [...]string{"agreed", "", "busy", "stuck", "open"}[verdict]
	if verdict == Ready {
		text = op.String()
		if op.From != (table.Link{}) {
			text += " from " + op.FromAt.String()
		}
	}
	if cut {
		text += ", cut"
	}
	return text
}

func (s *scene) want(l table.Link, want string) {
	s.Helper()
	assert.Equal(s, s.plan(l), want, l.Name)
}

const (
	file = syscall.S_IFREG
	dir  = syscall.S_IFDIR
)

var none table.Link

// A name that differs alone needs one operation.
func TestPlanOfOneName(t *testing.T) {
	for _, c := range []struct {
		what string
		can  providers.Ability
		make func(*scene)
		want string
	}{
		{"both sides agree", 0, func(s *scene) { s.has(10, file, root("n"), root("n")) }, "agreed"},
		{"it is not there at all", 0, func(*scene) {}, "agreed"},
		{"a new file", 0, func(s *scene) { s.has(10, file, root("n"), none) }, "write n"},
		{"a new directory", 0, func(s *scene) { s.has(10, dir, root("n"), none) }, "mkdir n"},
		{"new content", 0, func(s *scene) {
			s.has(10, file, root("n"), root("n"))
			s.does(func(tx *tree.Tx) { tx.ContentChanged(10, 2, table.Time{}) })
		}, "write n"},
		{"content that a program is writing", 0, func(s *scene) { s.has(10, file, root("n"), none); s.open[10] = true }, "open"},
		{"removed", 0, func(s *scene) { s.has(10, file, none, root("n")) }, "delete n"},
		{"an empty directory, removed", 0, func(s *scene) { s.has(10, dir, none, root("n")) }, "delete n"},
		{"renamed", canMove, func(s *scene) { s.has(10, file, root("n"), root("old")) }, "rename n from old"},
		{"renamed where there is no rename", canCopy, func(s *scene) { s.has(10, file, root("n"), root("old")) }, "copy n from old"},
		{"renamed where there is neither", 0, func(s *scene) { s.has(10, file, root("n"), root("old")) }, "write n from old"},
		{"renamed, with new content", canMove | canCopy, func(s *scene) {
			s.has(10, file, root("n"), root("old"))
			s.does(func(tx *tree.Tx) { tx.ContentChanged(10, 2, table.Time{}) })
		}, "write n from old"},
		{"a directory, renamed", canMove, func(s *scene) { s.has(10, dir, root("n"), root("old")) }, "rename n from old"},
		{"a directory, renamed where it moves key by key", 0, func(s *scene) { s.has(10, dir, root("n"), root("old")) }, "rename old"},
		{"another name", canMove | canCopy, func(s *scene) {
			s.has(10, file, root("old"), root("old"))
			s.does(func(tx *tree.Tx) { name(tx, root("n"), 10) })
		}, "copy n from old"},
		{"a file in the place of another", 0, func(s *scene) { s.has(10, file, none, root("n")); s.has(11, file, root("n"), none) }, "write n"},
		{"a file in the place of a directory", 0, func(s *scene) { s.has(10, dir, none, root("n")); s.has(11, file, root("n"), none) }, "delete n"},
		{"a directory in the place of one", 0, func(s *scene) { s.has(10, dir, none, root("n")); s.has(11, dir, root("n"), none) }, "mkdir n"},
		{"it rests", 0, func(s *scene) { s.has(10, file, root("n"), none); s.waiting[root("n")] = true }, "stuck"},
		{"it is under way", 0, func(s *scene) { s.has(10, file, root("n"), none); s.busy[root("n")] = &Operation{} }, "busy"},
		{"an answer is lost", 0, func(s *scene) {
			s.has(10, file, root("n"), none)
			s.does(func(tx *tree.Tx) {
				tx.SetAttempt(root("n"), &table.Attempt{Kind: AttemptWrite, Other: FormatSent(10, "")})
			})
		}, "settle n"},
	} {
		s := newScene(t, c.can)
		c.make(s)
		assert.Equal(t, s.plan(root("n")), c.want, c.what)
	}
}

// What a name depends on comes first, and its operation is the answer.
func TestPlanOfWhatComesFirst(t *testing.T) {
	s := newScene(t, canMove)
	s.has(10, dir, root("d"), none)
	s.has(11, file, at(10, "f"), none)
	s.want(at(10, "f"), "mkdir d")
	s.waiting[root("d")] = true
	s.want(at(10, "f"), "stuck")

	s = newScene(t, canMove)
	s.has(10, dir, none, root("d"))
	s.has(11, file, none, at(10, "f"))
	s.want(root("d"), "delete d/f")

	s = newScene(t, canMove)
	s.has(10, file, root("new"), root("old"))
	s.has(11, file, root("old"), none)
	s.want(root("old"), "rename new from old") // what is there lives on

	s = newScene(t, canMove)
	s.has(10, dir, none, root("d"))
	s.has(11, file, root("f"), at(10, "f"))
	s.want(root("d"), "rename f from d/f")
	s.busy[root("f")] = &Operation{}
	s.want(root("d"), "busy")
}

// Where an answer is lost nothing is taken, taken away or counted on before it is known what
// became of it.
func TestPlanBesideALostAnswer(t *testing.T) {
	lost := func(s *scene, l table.Link, kind uint8) {
		s.does(func(tx *tree.Tx) { tx.SetAttempt(l, &table.Attempt{Kind: kind, Other: FormatSent(10, "")}) })
	}
	s := newScene(t, canMove)
	s.has(10, file, root("new"), root("old"))
	lost(s, root("old"), AttemptDelete)
	s.want(root("new"), "settle old")

	s = newScene(t, canMove)
	s.has(10, dir, none, root("d"))
	lost(s, at(10, "f"), AttemptWrite)
	s.want(root("d"), "settle d/f")

	s = newScene(t, canMove)
	s.has(10, file, root("new"), root("old"))
	s.has(11, file, root("old"), none)
	s.does(func(tx *tree.Tx) {
		tx.SetRemote(root("second"), &table.Remote{Ino: 10, Kind: providers.KindFile, ContentVersion: 1})
	})
	s.want(root("old"), "write old") // what is there has another place
	lost(s, root("second"), AttemptDelete)
	s.want(root("old"), "rename new from old")
}

// An operation counts on just what is known of its name.
func TestCondition(t *testing.T) {
	version := providers.Version{ETag: "1"}
	assert.Equal(t, Condition(nil), providers.IfAbsent())
	assert.Equal(t, Condition(&table.Remote{Kind: providers.KindDir}), providers.IfDir())
	assert.Equal(t, Condition(&table.Remote{Kind: providers.KindFile, Version: version}), providers.IfVersion(version))
}

// Of names that wait for each other one stands aside first.
func TestPlanOfAnExchange(t *testing.T) {
	s := newScene(t, canMove)
	s.has(10, file, root("a"), root("b"))
	s.has(11, file, root("b"), root("a"))
	s.want(root("a"), "rename "+Parked+"id1 from a")
}

// Nothing is said of a name in a directory whose place at the remote is not known, but how
// that is found out.
func TestPlanWhileADirectoryMoves(t *testing.T) {
	s := newScene(t, canMove)
	s.has(10, dir, root("new"), root("old"))
	s.has(11, file, at(10, "f"), none)
	s.does(func(tx *tree.Tx) {
		tx.SetAttempt(root("old"), &table.Attempt{Op: "x", Kind: AttemptGone, Other: FormatLink(root("new"))})
		tx.SetAttempt(root("new"), &table.Attempt{Op: "x", Kind: AttemptMove, Other: FormatLink(root("old"))})
	})
	s.want(at(10, "f"), "settle new from old")
	v := s.tree.Lock()
	handing, moving := s.p.Unsettled(v, 10)
	s.tree.Unlock()
	assert.Equal(t, handing, 0, "hands names over")
	assert.Equal(t, moving, root("old"), "is being moved")

	s = newScene(t, 0)
	s.has(10, dir, root("new"), none)
	s.has(11, file, at(10, "f"), none)
	s.does(func(tx *tree.Tx) { tx.Edit(10).From = "<99" })
	s.want(at(10, "f"), "rename ")
}

// In a deep tree the search for what a name waits for ends early, unless the walk is deep.
func TestPlanOfADeepTree(t *testing.T) {
	s := newScene(t, 0)
	l := root("d")
	for ino := table.Ino(10); ino < 20; ino++ {
		s.has(ino, dir, none, l)
		l = at(ino, "d")
	}
	s.want(root("d"), "stuck, cut")
	s.view(func(v *tree.View) { s.p.Begin(v, true) })
	s.want(root("d"), "delete d/d/d/d/d/d/d/d/d/d, cut")
	s.view(s.p.End)
	s.want(root("d"), "stuck, cut")
}

// The best place to take content from is one with this state of it, with no answer open,
// where nothing is under way, and which it is to leave.
func TestHomeFor(t *testing.T) {
	s := newScene(t, 0)
	s.has(10, file, root("stays"), root("stays"))
	homeFor := func() (home RemoteHome) {
		v := s.tree.Lock()
		defer s.tree.Unlock()
		return s.p.HomeFor(v, 10, v.Inode(10))
	}
	assert.Equal(t, homeFor(), RemoteHome{root("stays"), true, false})
	remote := func(name string, version uint64) {
		s.does(func(tx *tree.Tx) {
			tx.SetRemote(root(name), &table.Remote{Ino: 10, Kind: providers.KindFile, ContentVersion: version})
		})
	}
	remote("left", 1)
	assert.Equal(t, homeFor(), RemoteHome{root("left"), true, true})
	s.busy[root("left")] = &Operation{}
	assert.Equal(t, homeFor(), RemoteHome{root("stays"), true, false})
	remote("old", 0)
	assert.Equal(t, homeFor(), RemoteHome{root("stays"), true, false})
	s.does(func(tx *tree.Tx) { tx.ContentChanged(10, 2, table.Time{}) })
	remote("newer", 2)
	assert.Equal(t, homeFor(), RemoteHome{root("newer"), true, true})
}

// What runs at one time is all of one kind, or could not be told apart in another order.
func TestOrder(t *testing.T) {
	const content, soft, del, move = classContent, classSoft, classDelete, classMove
	for _, c := range []struct {
		passed, next  Class
		lets, inOrder bool
	}{
		{content, content, true, true}, {content, soft, true, true}, {content, del, true, false}, {content, move, true, false},
		{soft, content, true, true}, {soft, soft, true, true}, {soft, del, false, false}, {soft, move, false, false},
		{del, content, false, false}, {del, soft, false, false}, {del, del, true, true}, {del, move, false, false},
		{move, content, false, false}, {move, soft, false, false}, {move, del, false, false}, {move, move, false, false},
	} {
		var o Order
		o.Pass(c.passed)
		assert.Equal(t, o.Lets(c.next, false), c.lets, c.next, "after", c.passed)
		assert.Equal(t, o.Lets(c.next, true), c.inOrder, c.next, "after", c.passed, "where nobody waits for content")
		assert.Equal(t, o.IsMoving(), c.passed == move, "it is moving after", c.passed)
		assert.Equal(t, o.Ends(c.next), c.next == move || c.next != del && c.passed == del, "nothing after", c.next, "after", c.passed)
	}
}

// Operations collide at one place, and where one moves the tree above the other's.
func TestCollides(t *testing.T) {
	place := func(path string) providers.Locator {
		at := assert.Of(providers.ParseLocator(path)).OK(t)
		return at
	}
	write := func(path string) *Operation { return &Operation{Verb: VerbWrite, At: place(path)} }
	rename := &Operation{Verb: VerbMove, Dir: true, Link: root("b"), From: root("a"), At: place("b"), FromAt: place("a")}
	for _, c := range []struct {
		a, b *Operation
		want bool
	}{
		{write("a"), write("a"), true},
		{write("a"), write("b"), false},
		{write("a/b"), write("a"), false},
		{rename, write("a/x"), true},
		{rename, write("b/x"), true},
		{write("b/x"), rename, true},
		{rename, write("c"), false},
	} {
		assert.Equal(t, c.a.Collides(c.b), c.want, c.a, "and", c.b)
	}
}

// Names and what was sent come back from an attempt as they went in.
func TestAttempt(t *testing.T) {
	l := at(7, "a/b c")
	assert.Equal(t, ParseLink(FormatLink(l)), l)
	ino, digest := ParseSent(FormatSent(9, "sha256:x y"))
	assert.Equal(t, ino, 9)
	assert.Equal(t, digest, "sha256:x y")
}
