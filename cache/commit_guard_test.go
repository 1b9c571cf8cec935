package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// guarded has a working copy over a repository take files of up to 10 bytes, and
// 20 in a commit.
func guarded(w *world, o *Options) {
	repository(w, o)
	o.Guard.MaxFile, o.Guard.MaxCommit = 10, 20
}

// commit commits, and gives what the repository has then and what was held back.
func (w *world) commit() (there []string, back map[string]string) {
	w.Helper()
	r := assert.Of(w.v.Commit(w.Context(), CommitOptions{})).OK(w)
	back = map[string]string{}
	for _, h := range r.HeldBack {
		back[h.Path] = h.Reason
	}
	return listBackend(w.repo), back
}

// commits commits and expects what the repository has then, and which paths are
// held back, in the report and in Status.
func (w *world) commits(there, back string) map[string]string {
	w.Helper()
	got, held := w.commit()
	paths, listed := []string{}, []string{}
	for path := range held {
		paths = append(paths, path)
	}
	for _, h := range w.v.Status().Held {
		listed = append(listed, h.Path)
	}
	assert.Must(w, strings.Join(got, ", ") == there, "the repository has", got, "want", there)
	assert.Must(w, strings.Join(sorted(paths), " ") == back && strings.Join(sorted(listed), " ") == back, "held back is", held, "listed", listed, "want", back)
	return held
}

const tooLong = "more than ten bytes"

// A file that is too large is held back with its reason, told once, and is no
// obstacle to anything else. It goes when it may.
func TestFileTooLarge(t *testing.T) {
	for name, release := range map[string]struct {
		how   func(w *world)
		there string
	}{
		"made smaller": {func(w *world) { w.do("put d/large small") }, "d/, d/large: small, more: 2, small: 1"},
		"cut off":      {func(w *world) { w.do("cut d/large 4") }, "d/, d/large: more, more: 2, small: 1"},
		"deleted":      {func(w *world) { w.do("rm d/large") }, "more: 2, small: 1"},
		"renamed away": {func(w *world) { w.ok(w.rename("d/large", "out/large")) }, "more: 2, small: 1"},
		"replaced":     {func(w *world) { w.do("put x y", "mv x d/large") }, "d/, d/large: y, more: 2, small: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, guarded, onlyAsked, excluding)
			w.do("mkdir d", "mkdir out", "put small 1")
			w.ok(w.put("d/large", tooLong))
			held := w.commits("small: 1", "d/large")
			if want := "19 bytes, and a commit takes files of up to 10 bytes: make it smaller, keep it elsewhere, or exclude or ignore it"; held["d/large"] != want {
				t.Errorf("the reason is %q, want %q", held["d/large"], want)
			}
			w.do("put more 2")
			w.commits("more: 2, small: 1", "d/large")
			p := w.v.Status().Problems
			assert.True(t, len(p) == 1 && p[0].Path == "d/large", "told", p)
			release.how(w)
			w.commits(release.there, "")
		})
	}
}

// choosy is a provider that takes more than ten bytes of some files.
type choosy struct{ providers.Everything }

func (c choosy) Capabilities() providers.Capabilities {
	caps := c.Everything.Capabilities()
	caps.MaxSize, caps.LargerSome = 10, true
	return caps
}

func (c choosy) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	for _, ch := range set.Changes {
		if ch.Body.Size > 10 && !strings.HasSuffix(ch.Locator.Name(), ".bin") {
			return providers.CommitResult{}, providers.Fail("choosy", ch.Method(), ch.Locator, providers.ErrTooLarge, nil)
		}
	}
	return c.Everything.Commit(ctx, set)
}

// Where only some files may be larger the provider is asked, and what it does not take
// is held back as anything that is too large.
func TestSomeFilesAreLarger(t *testing.T) {
	w := newWorld(t, guarded, onlyAsked, func(w *world, _ *Options) {
		w.wrap = func(p providers.Provider) providers.Provider {
			return choosy{providers.Wrap(p, providers.WrapOptions{})}
		}
	})
	w.do("put small 1")
	w.ok(w.put("large", tooLong))
	w.ok(w.put("large.bin", tooLong))
	held := w.commits("large.bin: "+tooLong+", small: 1", "large")
	if want := "19 bytes, and a commit takes files of up to 10 bytes"; !strings.HasPrefix(held["large"], want) {
		t.Errorf("the reason is %q, want %q", held["large"], want)
	}
	w.do("put more 2")
	w.commits("large.bin: "+tooLong+", more: 2, small: 1", "large")
	p := w.v.Status().Problems
	assert.True(t, len(p) == 1 && p[0].Path == "large", "told", p)
	w.ok(w.put("large", "short"))
	w.commits("large: short, large.bin: "+tooLong+", more: 2, small: 1", "")
}

// A new version that is too large leaves the old one where it is, also when the
// file moves.
func TestVersionTooLarge(t *testing.T) {
	w := newWorld(t, guarded, onlyAsked)
	w.do("put a 1", "put b 2")
	w.commits("a: 1, b: 2", "")
	w.ok(w.put("a", tooLong))
	w.commits("a: 1, b: 2", "a")
	w.do("mv a c", "mv b d")
	there, held := w.commit()
	assert.True(t, slices.Equal(there, []string{"a: 1", "d: 2"}) && held["c"] != "", "the repository has", there, "held back is", held)
	w.ok(w.put("c", "short"))
	w.commits("c: short, d: 2", "")
}

// A program may have written more since a file was last closed: then it is left
// alone until it is closed again, or was open for too long, and goes as it is then.
func TestFileGrowsTooLarge(t *testing.T) {
	w := newWorld(t, guarded, onlyAsked)
	o := w.create("open")
	w.write(o, "short", 0)
	w.ok(o.File.Flush(me))
	w.write(o, tooLong, 5)
	w.do("put small 1")
	there, held := w.commit()
	assert.True(t, slices.Equal(there, []string{"small: 1"}) && held["open"] == "a program is writing it", "the repository has", there, "held back is", held)
	ino := table.Ino(w.walk("open"))
	locked := w.v.lock()
	w.v.pending.SendOpen(locked.View, ino, locked.Inode(ino)) // as after Policy.MaxOpen
	locked.unlock()
	w.commits("small: 1", "open")
	w.ok(w.shut(o))
	w.commits("small: 1", "open")
}

// Nobody has to ask: where changes go by themselves, so does a file that may.
func TestFileTooLargeGoesByItself(t *testing.T) {
	w := newWorld(t, guarded, func(_ *world, o *Options) { o.Policy.NoWait = true })
	w.ok(w.put("large", tooLong))
	w.do("put small 1")
	w.until(func() bool { return w.v.Status().HeldCount == 1 && strings.Join(listBackend(w.repo), "") == "small: 1" })
	err := w.v.Drain(w.Context(), nil)
	var unsaved *UnsavedError
	assert.True(t, errors.As(err, &unsaved) && unsaved.Count == 1 && unsaved.Files[0].Path == "large" && strings.Contains(err.Error(), "10 bytes"), "a drain says", err)
	w.ok(w.put("large", "short"))
	w.until(func() bool { return w.v.Status().Queued == 0 })
	assert.Slice(t, listBackend(w.repo), []string{"large: short", "small: 1"}, "the repository")
}

// What is held back is so after a restart, and is not told again.
func TestHeldBackAfterARestart(t *testing.T) {
	w := newWorld(t, guarded, onlyAsked)
	w.ok(w.put("large", tooLong))
	w.commits("", "large")
	w.again()
	held := w.v.Status().Held
	assert.True(t, len(held) == 1 && held[0].Path == "large", "held back is", held)
	w.commits("", "large")
	w.noProblems()
	w.do("rm large")
	w.commits("", "")
}

// A commit brings so much at most. What is too much goes with later ones, the
// oldest change first.
func TestCommitTooLarge(t *testing.T) {
	w := newWorld(t, guarded, onlyAsked)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.ok(w.put(name, "9 bytes: "+name)) // 10
	}
	w.do("put e 1", "sym a l")
	held := w.commits("a: 9 bytes: a, b: 9 bytes: b", "c d e l")
	if want := "with its 10 bytes the commit would bring more than 20 bytes: it goes with a later one"; held["c"] != want {
		t.Errorf("the reason is %q, want %q", held["c"], want)
	}
	w.do("mv a moved")
	w.commits("b: 9 bytes: b, c: 9 bytes: c, d: 9 bytes: d, moved: 9 bytes: a", "e l") // a rename brings nothing
	w.commits("b: 9 bytes: b, c: 9 bytes: c, d: 9 bytes: d, e: 1, l -> a, moved: 9 bytes: a", "")
}

// Where nobody asks for commits, what was too much for one goes after a while.
func TestCommitTooLargeGoesByItself(t *testing.T) {
	clock := newTestClock()
	w := newWorld(t, guarded, func(_ *world, o *Options) {
		o.Policy.NoWait, o.Policy.Window, o.Now, o.Guard.MaxCommit = true, time.Hour, clock.now, 10
		o.pause = newManual().pause // the window stays open: "a" must not go before "b" is there
	})
	w.do("put a 9 bytes: a", "put b 9 bytes: b")
	w.commits("a: 9 bytes: a", "b")
	clock.pass(upload.HoldFor)
	w.v.loop.Tidy()
	w.until(func() bool { return w.v.Status().Queued == 0 })
}

// Many files that hold secrets cost a few readings, not one of all for each of
// them, and none while nothing has changed. A link, content across the pieces in
// which it is read, and a file that is open are found too.
func TestManySecrets(t *testing.T) {
	var calls calls
	w := newWorld(t, repository, onlyAsked, calls.asks, func(_ *world, o *Options) { o.Guard.Secrets = &Secrets{} })
	w.o.Guard.Secrets.Add("key", "0123456789")
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("f%02d", i))
		w.ok(w.put(names[i], "0123456789"))
	}
	w.do("sym 0123456789 link", "put clean 1")
	w.ok(w.put("large", strings.Repeat("x", 32<<10-5)+"0123456789"))
	open := w.create("open")
	w.write(open, "0123456789", 0)
	w.ok(open.File.Flush(me))
	defer open.File.Release()
	all := strings.Join(append(names, "large", "link", "open"), " ")
	w.commits("clean: 1", all)
	n := calls.of(providers.MethodCommit)
	assert.True(t, n <= 3, n, "sets were sent")
	w.do("put clean 2")
	w.commits("clean: 2", all)
	assert.Equal(t, calls.of(providers.MethodCommit), 1, "sets that what is known cost")
	for _, p := range w.v.Status().Problems {
		assert.False(t, strings.Contains(p.Err.Error(), "0123"), "told", p.Err)
	}
}

// A commit waits for a secret that is on its way, and for no other.
func TestSecretIsExpected(t *testing.T) {
	s := &Secrets{}
	w := newWorld(t, repository, onlyAsked, func(_ *world, o *Options) { o.Guard.Secrets = s })
	done, other := s.Expect(), s.Expect()
	w.do("put config 0123456789", "put clean 1")
	var r CommitReport
	var err error
	committed := async(func() { r, err = w.v.Commit(t.Context(), CommitOptions{}) })
	other()
	w.until(func() bool {
		locked := w.v.lock()
		defer locked.unlock()
		return w.v.sets.IsSending(locked.View) || len(listBackend(w.repo)) > 0
	})
	got := listBackend(w.repo)
	assert.True(t, len(got) == 0, "it was not waited for:", got)
	s.Add("key", "0123456789")
	done()
	<-committed
	w.ok(err)
	assert.True(t, len(r.HeldBack) == 1 && r.HeldBack[0].Path == "config", "held back is", r.HeldBack)
}
