package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// held keeps changes here until Commit, so that both sides can change.
func held(c Conflict) func(*world, *Options) {
	return func(_ *world, o *Options) {
		o.Policy.Commit, o.Policy.NoWait, o.Policy.Conflict = DueAsked, true, c
	}
}

// here is what a program sees, as listBackend writes it.
func (w *scene) here() []string { return w.local() }

// names lists a directory.
func (w *scene) names(dir string) []string {
	w.Helper()
	return sorted(slices.DeleteFunc(w.list(dir), func(name string) bool { return name == "." || name == ".." }))
}

func (w *world) pull() PullReport {
	w.Helper()
	r, err := w.v.Pull(context.Background(), PullOptions{})
	w.ok(err)
	return r
}

func (w *scene) commit() CommitReport {
	w.Helper()
	r, err := w.v.Commit(context.Background(), CommitOptions{})
	w.ok(err)
	return r
}

func (w *scene) sees(want ...string) {
	w.Helper()
	if got := w.here(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.Fatalf("here is\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// gone is another writer who deletes.
func (w *scene) gonePath(path string) {
	w.Helper()
	w.ok(w.p.Tamper(at(path), nil))
}

// other is another writer's link or directory.
func (w *scene) otherLink(path, target string) {
	w.Helper()
	_, err := w.p.Write(context.Background(), at(path), providers.String(target),
		providers.WriteOptions{If: providers.Unconditional(), Kind: providers.KindSymlink})
	w.ok(err)
}

func (w *scene) otherDir(path string) {
	w.Helper()
	_, err := w.p.Mkdir(context.Background(), at(path), providers.MkdirOptions{})
	w.ok(err)
}

func short(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:4])
}

func (w *scene) rmdir(path string) {
	w.Helper()
	dir, name := w.dirOf(path)
	w.ok(w.v.Rmdir(me, dir, name))
}

func (w *scene) chmod(path string, mode uint32) {
	w.Helper()
	_, err := w.v.SetAttr(me, w.walk(path), nil, &fs.SetAttr{Mode: &mode})
	w.ok(err)
}

func (w *scene) mode(path string) uint32 {
	w.Helper()
	a, err := w.v.Attr(me, w.walk(path), nil)
	w.ok(err)
	return a.Mode & 0o7777
}

// alsoLate are the cases of TestThreeWays in which the change of ours may come too late,
// without a pull before it, and the backend says so.
var alsoLate = []string{"both changed", "same change", "changed here, deleted there", "deleted here, changed there",
	"renamed here, changed there", "directory deleted here, new in it there", "changed below here, a file there"}

// Each case of what happened there and here, and what both sides have in the
// end. The start is the same for all: a and d/b exist, and were looked at.
func TestThreeWays(t *testing.T) {
	t.Parallel()
	ours, theirs := "ours", "theirs!"
	copyOf := func(stem, ext string) string { return stem + ".conflict-" + short(ours) + ext }
	dirCopy := ".conflict-" + reconcile.EmptyHash[:8]
	for _, c := range []struct {
		name        string
		there, here func(w *scene)
		want        []string
	}{
		{"nothing", func(*scene) {}, func(*scene) {}, []string{"a.txt: 1", "d/", "d/b: 2"}},
		{"changed there", func(w *scene) { w.tamper("a.txt", theirs) }, func(*scene) {},
			[]string{"a.txt: theirs!", "d/", "d/b: 2"}},
		{"new there", func(w *scene) { w.tamper("d/n", theirs); w.otherDir("e") }, func(*scene) {},
			[]string{"a.txt: 1", "d/", "d/b: 2", "d/n: theirs!", "e/"}},
		{"deleted there", func(w *scene) { w.gonePath("a.txt") }, func(*scene) {}, []string{"d/", "d/b: 2"}},
		{"directory deleted there", func(w *scene) { w.gonePath("d") }, func(*scene) {}, []string{"a.txt: 1"}},
		{"same change", func(w *scene) { w.tamper("a.txt", ours) }, func(w *scene) { w.ok(w.put("a.txt", ours)) },
			[]string{"a.txt: ours", "d/", "d/b: 2"}},
		{"same new file", func(w *scene) { w.tamper("n", ours) }, func(w *scene) { w.ok(w.put("n", ours)) },
			[]string{"a.txt: 1", "d/", "d/b: 2", "n: ours"}},
		{"both changed", func(w *scene) { w.tamper("a.txt", theirs) }, func(w *scene) { w.ok(w.put("a.txt", ours)) },
			[]string{copyOf("a", ".txt") + ": ours", "a.txt: theirs!", "d/", "d/b: 2"}},
		{"both made", func(w *scene) { w.tamper("n", theirs) }, func(w *scene) { w.ok(w.put("n", ours)) },
			[]string{"a.txt: 1", "d/", "d/b: 2", "n: theirs!", copyOf("n", "") + ": ours"}},
		{"both made a directory", func(w *scene) { w.tamper("e/x", theirs) },
			func(w *scene) { w.mkdir("e"); w.ok(w.put("e/y", ours)) },
			[]string{"a.txt: 1", "d/", "d/b: 2", "e/", "e/x: theirs!", "e/y: ours"}},
		{"deleted here, changed there", func(w *scene) { w.tamper("a.txt", theirs) }, func(w *scene) { w.ok(w.unlink("a.txt")) },
			[]string{"a.txt: theirs!", "d/", "d/b: 2"}},
		{"directory deleted here, changed there", func(w *scene) { w.tamper("d/b", theirs) },
			func(w *scene) { w.ok(w.unlink("d/b")); w.rmdir("d") },
			[]string{"a.txt: 1", "d/", "d/b: theirs!"}},
		{"directory deleted here, new in it there", func(w *scene) { w.tamper("d/n", theirs) },
			func(w *scene) { w.ok(w.unlink("d/b")); w.rmdir("d") },
			[]string{"a.txt: 1", "d/", "d/n: theirs!"}},
		{"directory made anew here, new in it there", func(w *scene) { w.tamper("d/n", theirs) },
			func(w *scene) { w.ok(w.unlink("d/b")); w.rmdir("d"); w.mkdir("d"); w.ok(w.put("d/y", ours)) },
			[]string{"a.txt: 1", "d/", "d/n: theirs!", "d/y: ours"}},
		{"changed here, deleted there", func(w *scene) { w.gonePath("a.txt") }, func(w *scene) { w.ok(w.put("a.txt", ours)) },
			[]string{"a.txt: ours", "d/", "d/b: 2"}},
		{"changed here, directory deleted there", func(w *scene) { w.gonePath("d") }, func(w *scene) { w.ok(w.put("d/b", ours)) },
			[]string{"a.txt: 1", "d/", "d/b: ours"}},
		{"new here, directory deleted there", func(w *scene) { w.gonePath("d") }, func(w *scene) { w.ok(w.put("d/y", ours)) },
			[]string{"a.txt: 1", "d/", "d/y: ours"}},
		{"deleted here and there", func(w *scene) { w.gonePath("a.txt") }, func(w *scene) { w.ok(w.unlink("a.txt")) },
			[]string{"d/", "d/b: 2"}},
		{"renamed here, changed there", func(w *scene) { w.tamper("a.txt", theirs) }, func(w *scene) { w.ok(w.rename("a.txt", "c")) },
			[]string{"c: theirs!", "d/", "d/b: 2"}},
		{"renamed and changed here, changed there", func(w *scene) { w.tamper("a.txt", theirs) },
			func(w *scene) { w.ok(w.put("a.txt", ours)); w.ok(w.rename("a.txt", "c")) },
			[]string{"a.txt: theirs!", "c: ours", "d/", "d/b: 2"}},
		{"renamed here, deleted there", func(w *scene) { w.gonePath("a.txt") },
			func(w *scene) { w.get("a.txt"); w.ok(w.rename("a.txt", "c")) },
			[]string{"c: 1", "d/", "d/b: 2"}},
		{"directory renamed here, changed in it there", func(w *scene) { w.tamper("d/b", theirs); w.tamper("d/n", theirs) },
			func(w *scene) { w.ok(w.rename("d", "e")) },
			[]string{"a.txt: 1", "e/", "e/b: theirs!", "e/n: theirs!"}},
		{"directory renamed here, to one that is new there", func(w *scene) { w.tamper("e/n", theirs) },
			func(w *scene) { w.ok(w.rename("d", "e")) },
			[]string{"a.txt: 1", "e/", "e/b: 2", "e/n: theirs!"}},
		{"directory renamed here, to one that was removed, and is changed there", func(w *scene) { w.tamper("e/n", theirs) },
			func(w *scene) { w.rmdir("e"); w.ok(w.rename("d", "e")) },
			[]string{"a.txt: 1", "e/", "e/b: 2", "e/n: theirs!"}},
		{"renamed over here, changed there", func(w *scene) { w.tamper("a.txt", theirs) },
			func(w *scene) { w.ok(w.put("t", ours)); w.ok(w.rename("t", "a.txt")) },
			[]string{copyOf("a", ".txt") + ": ours", "a.txt: theirs!", "d/", "d/b: 2"}},
		{"file became a directory there", func(w *scene) { w.gonePath("a.txt"); w.tamper("a.txt/x", theirs) }, func(*scene) {},
			[]string{"a.txt/", "a.txt/x: theirs!", "d/", "d/b: 2"}},
		{"directory became a file there", func(w *scene) { w.gonePath("d"); w.tamper("d", theirs) }, func(*scene) {},
			[]string{"a.txt: 1", "d: theirs!"}},
		{"file became a link there", func(w *scene) { w.gonePath("a.txt"); w.otherLink("a.txt", "d/b") }, func(*scene) {},
			[]string{"a.txt -> d/b", "d/", "d/b: 2"}},
		{"changed here, a directory there", func(w *scene) { w.gonePath("a.txt"); w.tamper("a.txt/x", theirs) },
			func(w *scene) { w.ok(w.put("a.txt", ours)) },
			[]string{copyOf("a", ".txt") + ": ours", "a.txt/", "a.txt/x: theirs!", "d/", "d/b: 2"}},
		{"changed below here, a file there", func(w *scene) { w.gonePath("d"); w.tamper("d", theirs) },
			func(w *scene) { w.ok(w.put("d/b", ours)) },
			[]string{"a.txt: 1", "d: theirs!", "d" + dirCopy + "/", "d" + dirCopy + "/b: ours"}},
		{"a file here, a directory there, both new", func(w *scene) { w.tamper("n/x", theirs) },
			func(w *scene) { w.ok(w.put("n", ours)) },
			[]string{"a.txt: 1", "d/", "d/b: 2", "n/", "n/x: theirs!", copyOf("n", "") + ": ours"}},
		{"same link", func(w *scene) { w.otherLink("l", "a.txt") }, func(w *scene) { w.symlink("a.txt", "l") },
			[]string{"a.txt: 1", "d/", "d/b: 2", "l -> a.txt"}},
		{"other link", func(w *scene) { w.otherLink("l", "elsewhere") }, func(w *scene) { w.symlink(ours, "l") },
			[]string{"a.txt: 1", "d/", "d/b: 2", "l -> elsewhere", copyOf("l", "") + " -> ours"}},
		{"conflict of a conflict copy", func(w *scene) { w.tamper("x.conflict-01234567.go", theirs) },
			func(w *scene) { w.ok(w.put("x.conflict-01234567.go", ours)) },
			[]string{"a.txt: 1", "d/", "d/b: 2", "x.conflict-01234567.go: theirs!", copyOf("x", ".go") + ": ours"}},
		{"the conflict copy is there already", func(w *scene) { w.tamper("a.txt", theirs); w.tamper(copyOf("a", ".txt"), ours) },
			func(w *scene) { w.ok(w.put("a.txt", ours)) },
			[]string{copyOf("a", ".txt") + ": ours", "a.txt: theirs!", "d/", "d/b: 2"}},
	} {
		for _, late := range []bool{false, true} {
			if late && !slices.Contains(alsoLate, c.name) {
				continue
			}
			t.Run(fmt.Sprint(c.name, map[bool]string{true: ", late"}[late]), func(t *testing.T) {
				w := newScene(t, holding("a.txt", "1", "d/b", "2"), held(SplitConflicts), func(w *world, _ *Options) {
					if strings.Contains(c.name, "was removed") {
						w.ok(w.p.TamperMkdir(at("e")))
					}
				})
				w.names("")
				w.names("d")
				c.here(w)
				c.there(w)
				if late {
					w.commit()
				}
				w.pull()
				want := sorted(slices.Clone(c.want))
				if !late { // or the copy is not here yet
					assert.Slice(t, sorted(w.here()), want, "after the pull here is")
				}
				w.commit()
				assert.Slice(t, sorted(listBackend(w.p)), want, "after the commit the backend has")
				if r := w.pull(); r.Changed+r.Deleted+len(r.Conflicts) > 0 {
					t.Errorf("another pull finds %+v", r)
				}
				assert.Slice(t, sorted(w.here()), want, "in the end here is")
				assert.Equal(t, w.dirtyNames(), 0, "names still differ")
			})
		}
	}
}

func (w *scene) symlink(target, path string) {
	w.Helper()
	dir, name := w.dirOf(path)
	_, err := w.v.Symlink(me, dir, name, target)
	w.ok(err)
}

// A new version is another inode; who has the old one open keeps it, the time
// of change never goes back, and what the backend does not keep stays.
func TestPulledFileIsANewInode(t *testing.T) {
	w := newScene(t, holding("f", "one"), held(SplitConflicts))
	old := w.walk("f")
	o := w.open("f", syscall.O_RDONLY)
	w.ok(w.v.SetXattr(me, old, "user.note", []byte("mine"), 0))
	before, _ := w.v.Attr(me, old, nil)
	past := time.Unix(1, 0)
	_, err := w.p.Write(context.Background(), at("f"), providers.String("two!"), providers.WriteOptions{
		If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrModTime, ModTime: past}})
	w.ok(err)
	w.pull()
	assert.Equal(t, w.read(o), "one", "who has the file open")
	o.File.Release()
	now := w.walk("f")
	if now == old || w.get("f") != "two!" {
		t.Errorf("inode %d then %d, content %q", old, now, w.get("f"))
	}
	after, _ := w.v.Attr(me, now, nil)
	assert.True(t, after.Mtime.After(before.Mtime), "the time of change went from", before.Mtime, "to", after.Mtime)
	if got, err := w.v.GetXattr(me, now, "user.note"); string(got) != "mine" {
		t.Errorf("attribute %q, %v", got, err)
	}
}

// Only the attributes changed there: the inode stays, ours win where both did.
func TestAttributesOnly(t *testing.T) {
	w := newScene(t, holding("f", "1", "g", "2"), held(SplitConflicts))
	f, g := w.walk("f"), w.walk("g")
	if w.get("f") != "1" {
		t.Fatal()
	}
	w.chmod("g", 0o600)
	for _, path := range []string{"f", "g"} {
		_, err := w.p.SetAttr(context.Background(), at(path), providers.SetAttrOptions{
			If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o751}})
		w.ok(err)
	}
	w.pull()
	if w.walk("f") != f || w.walk("g") != g {
		t.Error("another inode")
	}
	if w.mode("f") != 0o751 || w.mode("g") != 0o600 {
		t.Errorf("modes %o and %o", w.mode("f"), w.mode("g"))
	}
	w.commit()
	info := w.stat("g")
	if info.Attr.Mode != 0o600 {
		t.Errorf("the backend has mode %o", info.Attr.Mode)
	}
	assert.Equal(t, w.get("g"), "2", "content")
}

// ticking is a time that a test moves.
type ticking struct{ now atomic.Int64 }

// clocked gives the working copy a clock of the test's, and a TTL. Who looks has
// time for an answer that is on its way, however busy the machine is.
func clocked(c *ticking, ttl time.Duration) func(*world, *Options) {
	c.now.Store(time.Now().UnixNano())
	return func(_ *world, o *Options) {
		o.Policy.TTL = ttl
		o.Now = func() time.Time { return time.Unix(0, c.now.Load()) }
		o.looks = func(d time.Duration) time.Duration { return max(d, guard) }
	}
}

// hurried is for after clocked: looks wait in real time, for what does not come.
func hurried(_ *world, o *Options) { o.looks = nil }

func (c *ticking) add(d time.Duration) { c.now.Add(int64(d)) }

// What we changed there while a listing was under way is not taken from it.
func TestListingsDoNotUndoOurs(t *testing.T) {
	var c ticking
	w := newScene(t, holding("a", "1", "b", "2", "c", "3", "x", "4"), clocked(&c, time.Second))
	w.names("")
	c.add(2 * time.Second)
	gate, reached := make(chan struct{}), make(chan struct{})
	// The first page has come, the second has a, b and c in it no more.
	w.faults.Queue(providers.MethodList, providertest.Fault{}, providertest.Fault{Gate: gate, Reached: reached})
	done := make(chan error)
	go func() { done <- w.v.look(nil, table.Root, true) }()
	<-reached
	w.do("put 0 before all of the second page", "rm a", "rm x")
	w.settle()
	close(gate)
	w.ok(<-done)
	assert.Equal(t, strings.Join(w.names(""), " "), "0 b c", "names")
	w.backend("0: before all of the second page", "b: 2", "c: 3")
}
