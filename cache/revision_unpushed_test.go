package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// What is known of commits that are not pushed, and of a push that fails, is there
// after a kill, and gone with the push.
func TestUnpushedOutlivesTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote := memory.NewRemote(nil)
		w := newWorld(t, remoteWith(remote, "a", "A"), unwaited, impatient)
		w.do("put a 1")
		w.upload()
		first := w.v.Status().Unpushed
		w.do("put b 2")
		w.upload()
		if u := w.v.Status().Unpushed; u == nil || u.Commits != 2 || !u.Since.Equal(first.Since) || !u.Owed.IsZero() || u.Error != "" {
			t.Fatalf("nobody has pushed: got %+v, first %+v", u, first)
		}
		switches := w.repo.(*memory.Repository).Switches()
		switches.Cut(true)
		for range 2 {
			if _, err := w.v.Push(context.Background(), providers.PushOptions{}); err == nil || providers.KindOf(err).Err != providers.ErrUnavailable {
				t.Fatalf("push without a remote: %v", err)
			}
		}
		s := w.v.Status()
		if u := s.Unpushed; u == nil || u.Commits != 2 || u.Owed.IsZero() || !strings.Contains(u.Error, "has not answered") {
			t.Errorf("a push has failed: got %+v", u)
		}
		if len(s.Problems) != 1 || s.Problems[0].Op != "push" {
			t.Errorf("the same reason twice is told once: got %+v", s.Problems)
		}
		want := *s.Unpushed
		w.killed()
		if u := w.v.Status().Unpushed; u == nil || *u != want {
			t.Errorf("the next volume: got %+v, want %+v", u, want)
		}
		if err := w.push(); err == nil || len(w.v.Status().Problems) != 1 {
			t.Errorf("the next volume tells of it too: got %+v, %v", w.v.Status().Problems, err)
		}
		want = *w.v.Status().Unpushed
		w.stop()
		if l, err := Inspect(w.o.StateDir, 0); err != nil || l.Empty() || l.Unpushed == nil || *l.Unpushed != want {
			t.Errorf("without a volume: got %+v, %v; want %+v", l.Unpushed, err, want)
		}
		switches.Connect()
		w.start()
		w.ok(w.push())
		if u := w.v.Status().Unpushed; u != nil {
			t.Errorf("after the push: got %+v", u)
		}
	})
}

// A commit that is made while a push is under way stays unpushed when that push has
// ended, and the policy that pushes each commit pushes it next.
func TestCommitDuringAPush(t *testing.T) {
	for _, policy := range []bool{false, true} {
		t.Run(fmt.Sprintf("push each commit=%v", policy), func(t *testing.T) {
			remote := memory.NewRemote(nil)
			sent, goOn := make(chan string, 10), make(chan struct{})
			w := newWorld(t, remoteWith(remote, "a", "A"), unwaited, func(w *world, o *Options) {
				o.Policy.Push = policy
				w.wrap = around(func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
					err := next(ctx)
					if c.Method == providers.MethodPush {
						sent <- there(remote)
						<-goOn
					}
					return err
				})
			})
			var done sync.WaitGroup
			w.do("put a 1")
			w.upload()
			if !policy {
				done.Go(func() { w.ok(w.push()) })
			}
			assert.Equal(t, <-sent, "a: 1", "the first push")
			w.do("put b 2")
			w.upload()
			close(goOn)
			done.Wait()
			if !policy {
				if u := w.v.Status().Unpushed; u == nil || u.Commits != 1 || !u.Owed.IsZero() {
					t.Errorf("after the first push: got %+v, want one commit", u)
				}
				w.killed()
				w.ok(w.push())
			}
			assert.Equal(t, <-sent, "a: 1, b: 2", "the second push")
			if u := w.v.Status().Unpushed; !policy && u != nil {
				t.Errorf("after the second push: got %+v", u)
			}
		})
	}
}

// A push that ends after one that began later takes nothing of what that has sent for
// unpushed.
func TestPushThatIsOvertaken(t *testing.T) {
	c := newClone(t, seeded(t, "a", "A"))
	gate, reached := c.answerLate(providers.MethodPush)
	c.do("put a 1")
	c.commit()
	first := async(c.push)
	<-reached
	c.do("put b 2")
	c.commit()
	c.push()
	close(gate)
	<-first
	if u := c.v.Status().Unpushed; u != nil || there(c.remote) != "a: 1, b: 2" {
		t.Errorf("unpushed is %+v, the remote has %s", u, there(c.remote))
	}
}

// push pushes what is committed.
func (w *world) push() error {
	_, err := w.v.Push(context.Background(), providers.PushOptions{})
	return err
}

// Commits that a pull has made changes again are counted as what they become.
func TestUnpushedAfterARewind(t *testing.T) {
	remote := memory.NewRemote(nil)
	w := newWorld(t, remoteWith(remote, "a", "A"), unwaited)
	for _, put := range []string{"put b 1", "put c 2"} {
		w.do(put)
		w.upload()
	}
	another(t, remote, "b", "theirs") // they cannot be made anew on top of that
	w.pull()
	w.upload()
	if u := w.v.Status().Unpushed; u == nil || u.Commits != 1 {
		t.Errorf("got %+v, want one commit", u)
	}
}

// A directory that was renamed in a commit which a pull has made changes again is
// not taken for one that was deleted.
func TestRenameInARewoundCommit(t *testing.T) {
	remote := memory.NewRemote(nil)
	w := newWorld(t, remoteWith(remote, "a", "A"), unwaited)
	w.do("mkdir d")
	for i := range 30 {
		w.do(fmt.Sprintf("put d/%d %d", i, i))
	}
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
	for i := range 30 {
		w.do(fmt.Sprintf("rm e/%d", i))
	}
	if _, err := w.v.Commit(w.Context(), CommitOptions{}); !errors.Is(err, ErrMassDelete) {
		t.Errorf("all that was renamed is deleted: %v", err)
	}
}

// Wherever a commit is killed, what looks into the working copy after it finds that
// something is not at the remote yet, and the next run counts the commit once.
func TestKilledWhileACommitIsNoted(t *testing.T) {
	var dirs []string
	armed := false // guarded by the volume's lock
	c := newClone(t, seeded(t, "f", "one"), func(w *world, o *Options) {
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
	if len(dirs) < 3 {
		t.Fatalf("%d states", len(dirs))
	}
	for i, dir := range dirs {
		if l, err := Inspect(dir, 0); err != nil || l.Empty() {
			t.Errorf("state %d of %d: %+v, %v", i, len(dirs), l, err)
		}
	}
	c.killed()
	c.stop()
	c.o.StateDir = dirs[len(dirs)-2] // all is noted but the end of the set
	c.start()
	c.commit()
	if u := c.v.Status().Unpushed; u == nil || u.Commits != 1 {
		t.Errorf("unpushed: %+v", u)
	}
}
