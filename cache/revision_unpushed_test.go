package cache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
)

// What is known of commits that are not pushed, and of a push that fails, is there
// after a kill, and gone with the push.
func TestUnpushedOutlivesTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote := memoryrepo.NewRemote(nil)
		w := newWorld(t, remoteWith(remote, "a", "A"), unwaited, impatient)
		w.do("put a 1")
		w.upload()
		first := w.v.Status().Unpushed
		w.do("put b 2")
		w.upload()
		u := w.unpushed(2)
		assert.True(t, u.Since.Equal(first.Since) && u.Owed.IsZero() && u.Error == "", "nobody has pushed: got", u, "first", first)
		switches := w.repo.(*memoryrepo.Repository).Switches()
		switches.Cut(true)
		for range 2 {
			_, err := w.v.Push(context.Background(), providers.PushOptions{})
			assert.Must(t, err != nil && providers.KindOf(err).Err == providers.ErrUnavailable, "push without a remote", err)
		}
		s := w.v.Status()
		u = w.unpushed(2)
		assert.True(t, !u.Owed.IsZero() && strings.Contains(u.Error, "has not answered"), "a push has failed: got", u)
		assert.True(t, len(s.Problems) == 1 && s.Problems[0].Op == "push", "the same reason twice is told once: got", s.Problems)
		want := *s.Unpushed
		w.killed()
		assert.Equal(t, *w.unpushed(2), want, "the next volume")
		assert.True(t, w.push() != nil, "it was pushed")
		assert.Equal(t, len(w.v.Status().Problems), 1, "the next volume tells of it too")
		want = *w.v.Status().Unpushed
		w.stop()
		l := assert.Of(Inspect(w.o.StateDir, 0)).OK(w)
		assert.True(t, !l.Empty() && l.Unpushed != nil && *l.Unpushed == want, "without a volume: got", l.Unpushed, "want", want)
		var gone error
		w.o.Lost = func(noted *Unpushed, on providers.Revision, whole bool) error {
			assert.True(t, *noted == want && on != "" && whole, "it is asked for", noted, on, whole)
			return gone
		}
		w.start()
		for _, gone = range []error{errors.New("the clone is gone"), nil} {
			u, freed := w.v.ContentOf(gone != nil)
			assert.True(t, freed == 0 && (gone == nil) == (u.Unsaved == 0) && (gone == nil) == (u.Lost == ""), "in a volume with", gone, "given up", freed, "there is", u)
		}
		w.stop()
		switches.Connect()
		w.start()
		w.ok(w.push())
		w.unpushed(0)
	})
}

// Of commits that the clone has and that are not pushed, a new working copy knows as well as the
// one that has made them, and so does one that was rebuilt; they are counted once.
func TestUnpushedOfAnotherWorkingCopy(t *testing.T) {
	c := newClone(t, seeded(t, "f", "one"))
	for _, text := range []string{"two", "three"} {
		c.ok(c.put("f", text))
		c.commit()
	}
	c.unpushed(2)
	c.stop()
	for _, dir := range []string{c.o.StateDir, t.TempDir()} {
		if c.o.StateDir = dir; state.IsOne(dir) {
			assert.Of(Scan(t.Context(), dir, true, nil)).OK(t)
			was := assert.Of(Inspect(dir, 0)).OK(t)
			assert.True(t, was.Unpushed.Commits == 2 && was.StandsOn != "", "what the old database says stays known", was)
		}
		for range 2 {
			c.start()
			c.unpushed(2)
			c.stop()
		}
		assert.Equal(t, assert.Of(Inspect(dir, 0)).OK(t).Unpushed.Commits, 2, "without a volume")
	}
	c.start()
	c.push()
	c.unpushed(0)
	c.ok(c.put("f", "four"))
	c.commit()
	c.unpushed(1)
	c.repo.Switches().Fail(providers.MethodPush, 1, providers.ErrCorrupt)
	assert.Is(t, c.world.push(), providers.ErrCorrupt, "what is damaged is not sent again")
	assert.True(t, c.unpushed(1).Error != "", "and it is said why")
	c.push()
	c.unpushed(0)
}

// push pushes what is committed.
func (w *world) push() error {
	_, err := w.v.Push(context.Background(), providers.PushOptions{})
	return err
}

// A directory that was renamed in a commit which a pull has made changes again is
// not taken for one that was deleted.
func TestRenameInARewoundCommit(t *testing.T) {
	remote := memoryrepo.NewRemote(nil)
	w := newWorld(t, remoteWith(remote, "a", "A"), unwaited)
	w.do("mkdir d")
	w.doEach(0, 30, "put d/%d x")
	w.upload()
	w.ok(w.push())
	w.do("mv d e", "put b ours")
	w.upload()
	another(t, remote, "b", "theirs") // it cannot be made anew on top of that
	w.pull()
	w.upload()
	w.ok(w.push())
	w.same()
	w.do("mkdir keep") // more than half would go for good
	w.doEach(0, 30, "rm e/%d")
	assert.Is(t, assert.ErrOf(w.v.Commit(w.Context(), CommitOptions{})), ErrMassDelete, "all that was renamed is deleted")
}

// Wherever a commit is killed, what looks into the working copy after it finds that
// something is not at the remote yet, and the next run counts the commit once: that of a
// working copy which has no revision yet, too.
func TestKilledWhileACommitIsNoted(t *testing.T) {
	for _, remote := range []*memoryrepo.Remote{seeded(t, "f", "one"), seeded(t)} {
		var dirs []string
		armed := false // guarded by the volume's lock
		c := newClone(t, remote, func(w *world, o *Options) {
			o.within = func(*Tx) {
				if armed {
					dirs = append(dirs, copyStill(w.T, o.StateDir))
				}
			}
		})
		arm := func(is bool) {
			locked := c.v.lock()
			defer locked.unlock()
			armed = is
		}
		c.ok(c.put("f", "two"))
		arm(true)
		c.commit()
		arm(false)
		assert.Must(t, len(dirs) >= 3, len(dirs), "states")
		c.killed()
		c.stop()
		sent := 0 // the state with which the set was sent: the last in which no commit is noted
		for i, dir := range dirs {
			l, err := Inspect(dir, 0)
			assert.True(t, err == nil && !l.Empty(), "state", i, "of", len(dirs), l, err)
			if l.Unpushed == nil {
				sent = i
			}
		}
		for _, dir := range dirs[sent:] {
			c.o.StateDir = dir
			c.start()
			c.commit()
			c.unpushed(1)
			c.stop()
		}
	}
}
