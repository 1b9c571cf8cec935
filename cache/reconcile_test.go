package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	r := assert.Of(w.v.Pull(context.Background(), PullOptions{})).OK(w)
	return r
}

func (w *scene) commit() CommitReport {
	w.Helper()
	r := assert.Of(w.v.Commit(context.Background(), CommitOptions{})).OK(w)
	return r
}

func (w *scene) sees(want ...string) {
	w.Helper()
	got := w.here()
	assert.Must(w, strings.Join(got, "\n") == strings.Join(want, "\n"), "here is", strings.Join(got, "\n\t"), "want", strings.Join(want, "\n\t"))
}

// gone is another writer who deletes.
func (w *scene) gonePath(path string) {
	w.Helper()
	w.ok(w.p.Tamper(at(path), nil))
}

// replaced is a file that a program has open when a pull brings others' in its place.
func (w *scene) replaced(path string) fs.Opened {
	w.Helper()
	o := w.open(path, syscall.O_RDWR)
	w.tamper(path, "theirs")
	w.pull()
	return o
}

// otherLink is another writer's link.
func (w *scene) otherLink(path, target string) {
	w.Helper()
	_, err := w.p.Write(context.Background(), at(path), providers.String(target),
		providers.WriteOptions{If: providers.Unconditional(), Kind: providers.KindSymlink})
	w.ok(err)
}

// theirs has another writer do a script of put, rm, mkdir and sym.
func (w *scene) theirs(script string) {
	w.Helper()
	for _, line := range listed(script) {
		step := strings.SplitN(line, " ", 3)
		switch step[0] {
		case "put":
			w.tamper(step[1], step[2])
		case "rm":
			w.gonePath(step[1])
		case "mkdir":
			w.ok(assert.ErrOf(w.p.Mkdir(context.Background(), at(step[1]), providers.MkdirOptions{})))
		case "sym":
			w.otherLink(step[2], step[1])
		default:
			w.Fatal("what is", step)
		}
	}
}

func short(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:4])
}

func (w *scene) mode(path string) uint32 {
	w.Helper()
	return w.attr(path).Mode & 0o7777
}

// A change of ours that comes too late is refused, and what becomes of the name then goes with the
// same commit or the next. What becomes of which is proved on package merge.
func TestTooLate(t *testing.T) {
	t.Parallel()
	names := strings.NewReplacer("HASH", short("ours"), "EMPTY", reconcile.EmptyHash[:8])
	for _, c := range []struct{ name, there, here, want string }{
		{"same change", "put a.txt ours", "put a.txt ours", "a.txt: ours, d/, d/b: 2"},
		{"both changed", "put a.txt theirs", "put a.txt ours", "a.conflict-HASH.txt: ours, a.txt: theirs, d/, d/b: 2"},
		{"deleted here, changed there", "put a.txt theirs", "rm a.txt", "a.txt: theirs, d/, d/b: 2"},
		{"directory deleted here, new in it there", "put d/n theirs", "rm d/b, rmdir d", "a.txt: 1, d/, d/n: theirs"},
		{"changed here, deleted there", "rm a.txt", "put a.txt ours", "a.txt: ours, d/, d/b: 2"},
		{"renamed here, changed there", "put a.txt theirs", "mv a.txt c", "c: theirs, d/, d/b: 2"},
		{"changed below here, a file there", "rm d, put d theirs", "put d/b ours", "a.txt: 1, d: theirs, d.conflict-EMPTY/, d.conflict-EMPTY/b: ours"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newScene(t, holding("a.txt", "1", "d/b", "2"), held(SplitConflicts))
			w.names("")
			w.names("d")
			w.ours(c.here)
			w.theirs(names.Replace(c.there))
			w.commit()
			w.pull()
			w.commit()
			want := sorted(listed(names.Replace(c.want)))
			assert.Slice(t, sorted(listBackend(w.p)), want, "the backend has")
			assert.Slice(t, sorted(w.here()), want, "local is")
			assert.Equal(t, w.dirtyNames(), 0, "names still differ")
		})
	}
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
	w.faults.Queue(providers.MethodList, providertest.Fault{})
	reached, open := w.gate(providers.MethodList) // the first page has come, the second has a, b and c in it no more
	done := make(chan error)
	go func() { done <- w.v.listings.Look(nil, table.Root, true) }()
	<-reached
	w.do("put 0 before all of the second page", "rm a", "rm x")
	w.settle()
	open()
	w.ok(<-done)
	assert.Slice(t, w.names(""), []string{"0", "b", "c"}, "names")
	w.backend("0: before all of the second page", "b: 2", "c: 3")
}

// Only the attributes changed there: the inode stays, ours win where both did.
func TestAttributesOnly(t *testing.T) {
	w := newScene(t, holding("f", "1", "g", "2"), held(SplitConflicts))
	f, g := w.walk("f"), w.walk("g")
	assert.Equal(t, w.get("f"), "1")
	w.do("chmod g 600")
	for _, path := range []string{"f", "g"} {
		_, err := w.p.SetAttr(context.Background(), at(path), providers.SetAttrOptions{
			If: providers.Unconditional(), Attr: providers.Attr{Valid: providers.AttrMode, Mode: 0o751}})
		w.ok(err)
	}
	w.pull()
	assert.True(t, w.walk("f") == f && w.walk("g") == g, "another inode")
	assert.Equal(t, w.mode("f"), 0o751, "mode of f")
	assert.Equal(t, w.mode("g"), 0o600, "mode of g")
	w.commit()
	assert.Equal(t, w.stat("g").Attr.Mode, 0o600, "the backend has mode")
	assert.Equal(t, w.get("g"), "2", "content")
}
