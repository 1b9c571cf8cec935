package cache

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/providertest"
)

// clones are working copies of clones of one repository.
type clone struct {
	*scene
	repo   *memoryrepo.Repository
	remote *memoryrepo.Remote
}

func newClone(t *testing.T, remote *memoryrepo.Remote, change ...func(*world, *Options)) *clone {
	t.Helper()
	repo := memoryrepo.NewRepository(remote, "", memory.Options{})
	c := &clone{&scene{&world{T: t, faults: providertest.NewFaults(t), repo: repo}}, repo, remote}
	c.o = Options{StateDir: t.TempDir(), Provider: "memory", Patience: guard, strict: true,
		pause: atOnce}
	held(SplitConflicts)(c.world, &c.o)
	for _, f := range change {
		f(c.world, &c.o)
	}
	c.start()
	t.Cleanup(c.stop)
	return c
}

func (c *clone) push() {
	c.Helper()
	c.ok(assert.ErrOf(c.v.Push(context.Background(), providers.PushOptions{})))
}

func (c *clone) there(path, content string) {
	c.Helper()
	var data []byte
	if content != "" {
		data = []byte(content)
	}
	c.ok(c.remote.Tamper("main", at(path), data))
}

// remoteAttr is what others see of a file.
func (c *clone) remoteAttr(path string) providers.Attr {
	c.Helper()
	info := assert.Of(memoryrepo.NewRepository(c.remote, "", memory.Options{}).Stat(c.Context(), at(path))).OK(c)
	return info.Attr
}

func seeded(t *testing.T, files ...string) *memoryrepo.Remote {
	t.Helper()
	r := memoryrepo.NewRemote(nil)
	for i := 0; i < len(files); i += 2 {
		assert.OK(t, r.Tamper("main", at(files[i]), []byte(files[i+1])))
	}
	return r
}

// What others pushed comes with a pull, not before, and what was changed here
// and not committed stays.
func TestPullRevision(t *testing.T) {
	c := newClone(t, seeded(t, "a", "1", "d/b", "2", "d/c", "3"))
	c.sees("a: 1", "d/", "d/b: 2", "d/c: 3")
	c.there("a", "theirs")
	c.there("d/c", "")
	c.there("e/n", "new")
	c.ok(c.put("d/b", "ours"))
	c.sees("a: 1", "d/", "d/b: ours", "d/c: 3")
	r := c.pull()
	assert.True(t, r.Revision != "" && r.Changed >= 2 && r.Deleted == 1, "report", r)
	c.sees("a: theirs", "d/", "d/b: ours", "e/", "e/n: new")
	head, _ := c.repo.Head(context.Background())
	assert.Equal(t, head, r.Revision, "the head")
	again := c.pull()
	assert.Equal(t, again.Changed+again.Deleted, 0, "another pull", again)
}

// Unpushed commits are no obstacle: what they changed goes on top of theirs.
func TestPullOverUnpushedCommits(t *testing.T) {
	for _, c := range []struct{ name, ours, theirs, want string }{
		{"apart", "put a ours, put d/n ours", "put b theirs, put d/m theirs", "a: ours, b: theirs, d/, d/f: 3, d/m: theirs, d/n: ours"},
		{"the same file", "put a ours", "put a theirs", "a: theirs, a.conflict-" + short("ours") + ": ours, b: 2, d/, d/f: 3"},
		{"the same change", "put a same", "put a same", "a: same, b: 2, d/, d/f: 3"},
		{"deleted here", "rm a", "put b theirs", "b: theirs, d/, d/f: 3"},
		{"deleted here, changed there", "rm a", "put a theirs", "a: theirs, b: 2, d/, d/f: 3"},
		{"a directory renamed here", "mv d e", "put b theirs", "a: 1, b: theirs, e/, e/f: 3"},
		{"a directory deleted here, something new in it there", "rm d/f, rmdir d", "put d/n theirs", "a: 1, b: 2, d/, d/n: theirs"},
		{"a file became a directory here", "rm a, mkdir a, put a/n ours", "put b theirs", "a/, a/n: ours, b: theirs, d/, d/f: 3"},
		{"a directory became a file here", "rm d/f, rmdir d, put d ours", "put b theirs", "a: 1, b: theirs, d: ours"},
		{"a file became a symbolic link here", "rm a, sym b a", "put b theirs", "a -> b, b: theirs, d/, d/f: 3"},
		{"a file became a directory here and was changed there", "rm a, mkdir a, put a/n ours", "put a theirs",
			"a: theirs, a.conflict-e3b0c442/, a.conflict-e3b0c442/n: ours, b: 2, d/, d/f: 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newClone(t, seeded(t, "a", "1", "b", "2", "d/f", "3"))
			w.names("")
			w.names("d")
			want := listed(c.want)
			w.ours(c.ours)
			assert.True(t, w.commit().Committed, "nothing was committed")
			for _, line := range listed(c.theirs) {
				step := strings.SplitN(line, " ", 3)
				w.there(step[1], step[2])
			}
			w.pull()
			w.sees(want...)
			w.commit()
			w.push()
			w.sees(want...)
			newClone(t, w.remote).sees(want...)
			assert.Equal(t, w.dirtyNames(), 0, "names differ in the end")
		})
	}
}

// A directory without entries, which the store does not have, is no reason to
// leave there what it took the place of.
func TestPullOverAnEmptyDirectory(t *testing.T) {
	w := newClone(t, seeded(t, "a", "1", "b", "2"))
	w.names("")
	w.do("rm a", "mkdir a")
	w.commit()
	w.there("b", "theirs")
	w.push()
	w.sees("a/", "b: theirs")
	newClone(t, w.remote).sees("b: theirs")
}

// A directory that others made as well, in one whose new names nobody has seen
// yet, is looked into again, although the commit of ours says that it is there.
func TestCommitOfADirectoryMadeThere(t *testing.T) {
	for _, script := range [][]string{{"mkdir d/s"}, {"mkdir d/s", "mkdir d/s/t"}, {"mkdir d/r", "mkdir d/r/t", "mv d/r d/s"}} {
		w := newClone(t, seeded(t, "a", "1", "d/f", "2"))
		w.names("")
		w.names("d")
		w.do(script...)
		w.there("d/f", "")
		w.pull()
		w.there("d/s/n", "theirs")
		w.there("d/s/t/n", "theirs")
		w.pull()
		w.commit()
		w.sees("a: 1", "d/", "d/s/", "d/s/n: theirs", "d/s/t/", "d/s/t/n: theirs")
	}
}

// An empty directory in one that only an unpushed commit made is not known to be
// empty any more, once that commit is no more.
func TestPullOverADirectoryMadeThere(t *testing.T) {
	w := newClone(t, seeded(t, "a", "1"))
	w.names("")
	w.do("mkdir d", "mkdir d/s", "mkdir d/s/t", "put d/f ours")
	w.commit()
	w.there("d/s/t/n", "theirs")
	w.push()
	w.sees("a: 1", "d/", "d/f: ours", "d/s/", "d/s/t/", "d/s/t/n: theirs")
}

// A pull that ends before the head has moved leaves nothing behind that the next
// commit could go by: what it took back of ours is in the head all the same.
func TestCommitAfterAHalfPull(t *testing.T) {
	c := newClone(t, seeded(t, "a", "1", "d/b", "2"))
	c.do("put c ours", "mv d/b e")
	c.commit() // not pushed
	c.there("a", "theirs")
	c.faults.Queue(providers.MethodAdopt, providertest.Fault{Before: providers.ErrPermission})
	assert.Must(t, assert.ErrOf(c.v.Pull(context.Background(), PullOptions{})) != nil, "no pull, and no error")
	c.do("rm c", "mv d f", "mv e f/e")
	c.commit()
	want := []string{"a: 1", "f/", "f/e: 2"}
	assert.Slice(t, sorted(listBackend(c.repo)), want, "the repository")
	c.push()
	c.sees("a: theirs", "f/", "f/e: 2")
	newClone(t, c.remote).sees("a: theirs", "f/", "f/e: 2")
}

// A commit whose answer got lost is known before a pull goes by what it did.
func TestPullAfterALostAnswer(t *testing.T) {
	c := newClone(t, seeded(t, "a", "1", "b", "2"))
	c.sees("a: 1", "b: 2")
	c.do("put a ours", "rm b")
	c.faults.Queue(providers.MethodCommit, providertest.Fault{After: providers.ErrUnavailable})
	assert.Must(t, assert.ErrOf(c.v.sets.Send(context.Background(), nil, ^uint64(0))) != nil, "the answer did not get lost")
	c.there("b", "theirs")
	c.pull()
	c.commit()
	c.sees("a: ours", "b: theirs")
	c.push()
	newClone(t, c.remote).sees("a: ours", "b: theirs")
}

// A commit whose answer got lost says what it committed once that is known.
func TestReportAfterALostAnswer(t *testing.T) {
	c := newClone(t, seeded(t, "a", "1", "b", "2"))
	c.sees("a: 1", "b: 2")
	c.do("put a ours", "rm b")
	c.faults.Queue(providers.MethodCommit, providertest.Fault{After: providers.ErrUnavailable})
	r := c.commit()
	assert.True(t, r.Committed && r.Changes == 2, "report", r)
	r = c.commit()
	assert.True(t, !r.Committed && r.Changes == 0, "the next", r)
}

// A crash after the head went back, and before the table says so, loses nothing of
// what was committed and not pushed.
func TestOpenAfterAHalfPull(t *testing.T) {
	c := newClone(t, seeded(t, "a", "1", "d/b", "2"))
	ctx := context.Background()
	base, _ := c.repo.Head(ctx)
	c.do("put c ours", "rm d/b")
	c.commit() // not pushed
	c.there("a", "theirs")
	from, _ := c.repo.Head(ctx)
	note := fmt.Appendf(nil, `{"From":%q,"Base":%q,"To":%q}`, from, base, base) // as earlier versions have it, too
	c.ok(c.v.update(func(v *Tx) error { v.Set("pull/rewind", note); return nil }))
	c.ok(c.repo.Adopt(ctx, from, base))
	c.ok(c.v.Close())
	c.o.Policy.TTL = time.Nanosecond // whoever looks compares with the head
	c.v = assert.Of(Open(ctx, c.faults.Wrap(c.repo), c.o)).OK(t)
	c.sees("a: 1", "c: ours", "d/")
	c.pull()
	c.commit()
	c.push()
	c.sees("a: theirs", "c: ours", "d/")
	newClone(t, c.remote).sees("a: theirs", "c: ours")
}

// A remote without the branch is nothing to pull.
func TestPullOfNothing(t *testing.T) {
	c := newClone(t, memoryrepo.NewRemote(nil))
	assert.True(t, c.pull().Skipped != "", "it pulled something")
}
