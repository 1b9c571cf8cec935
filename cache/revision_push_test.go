package cache

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// remoteWith is a remote whose branch holds files, with a clone for w.
func remoteWith(remote *memoryrepo.Remote, files ...string) func(*world, *Options) {
	return func(w *world, o *Options) {
		w.repo = memoryrepo.NewRepository(remote, "", memory.Options{PageSize: 3})
		has(files...)(w, o)
		w.ok(assert.ErrOf(w.repo.(providers.Pusher).Push(context.Background(), providers.PushOptions{})))
	}
}

// another commits a file in another clone and pushes it.
func another(t *testing.T, remote *memoryrepo.Remote, path, content string) {
	t.Helper()
	clone := memoryrepo.NewRepository(remote, "", memory.Options{})
	info, err := clone.Stat(context.Background(), at(path))
	cond := providers.IfAbsent()
	if err == nil {
		cond = providers.IfVersion(info.Version)
	}
	_, err = clone.Write(context.Background(), at(path), providers.String(content), providers.WriteOptions{If: cond})
	if err == nil {
		_, err = clone.Push(context.Background(), providers.PushOptions{})
	}
	assert.OK(t, err)
}

// there is what a new clone of a remote has.
func there(remote *memoryrepo.Remote) string {
	return strings.Join(listBackend(memoryrepo.NewRepository(remote, "", memory.Options{})), ", ")
}

func TestPush(t *testing.T) {
	remote := memoryrepo.NewRemote(nil)
	w := newWorld(t, remoteWith(remote, "a", "A", "b", "B"), unwaited)
	w.do("put a mine", "mv b c")
	r := w.upload()
	assert.True(t, r.Committed && r.Revision != "" && r.Changes == 3, "report", r)
	assert.Equal(t, there(remote), "a: A, b: B", "pushed by the commit")
	u := w.unpushed(1)
	assert.True(t, !u.Since.IsZero() && u.Owed.IsZero(), "unpushed is", u)
	assert.Equal(t, w.v.Status().Revision, r.Revision, "the revision in the status")
	result := assert.Of(w.v.Push(context.Background(), providers.PushOptions{})).OK(w)
	assert.True(t, result.Pushed, "result", result)
	assert.Equal(t, there(remote), "a: mine, c: B", "the remote")
	w.unpushed(0)
}

// slowly is a provider whose Push takes several times as long as anybody waits who
// hears nothing of it.
type slowly struct {
	providers.Everything
	silent bool
}

func (s slowly) Push(ctx context.Context, o providers.PushOptions) (providers.PushResult, error) {
	for range 12 {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return providers.PushResult{}, ctx.Err()
		}
		if !s.silent {
			o.Sent(1)
		}
	}
	return s.Everything.Push(ctx, o)
}

// A push that goes on is waited for however long it takes, and one that does not only
// for the patience.
func TestPushThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, silent := range []bool{true, false} {
			remote := memoryrepo.NewRemote(nil)
			w := newWorld(t, remoteWith(remote, "a", "A"), unwaited, impatient, func(w *world, _ *Options) {
				w.wrap = func(p providers.Provider) providers.Provider {
					return slowly{providers.Wrap(p, providers.WrapOptions{}), silent}
				}
			})
			w.do("put a mine")
			w.upload()
			want, wantErr := "a: mine", error(nil)
			if silent {
				want, wantErr = "a: A", providers.ErrUnavailable
			}
			assert.Is(t, w.push(), wantErr, "silent", silent)
			assert.Equal(t, there(remote), want, "silent", silent, "the remote")
		}
	})
}

func TestPushOfEachCommit(t *testing.T) {
	remote := memoryrepo.NewRemote(nil)
	w := newWorld(t, remoteWith(remote, "a", "A"), background, func(_ *world, o *Options) { o.Policy.Push = true })
	repo := w.repo.(*memoryrepo.Repository)
	repo.Switches().Fail(providers.MethodPush, 2, providers.ErrUnavailable)
	w.do("put a 1")
	w.until(func() bool { return there(remote) == "a: 1" })
	another(t, remote, "b", "theirs")
	w.do("put a 2")
	w.until(func() bool { return there(remote) == "a: 2, b: theirs" })
	w.do("put c 3")
	w.stop() // a clean end pushes what is left
	assert.Equal(t, there(remote), "a: 2, b: theirs, c: 3", "the remote")
}

func TestCommitMessage(t *testing.T) {
	remote := memoryrepo.NewRemote(nil)
	w := newWorld(t, remoteWith(remote, "a", "A"), unwaited)
	before := len(remote.Log("main"))
	w.do("put a 1", "put b 2")
	w.upload()
	author := providers.Identity{Name: "Bob", Email: "bob@acme.test"}
	w.do("put a 3", "put c 4", "put d 5", "put e 6")
	w.ok(assert.ErrOf(w.v.Commit(context.Background(), CommitOptions{Message: "said so", Author: author})))
	w.do("put a 7", "put c 8", "put d 9", "put e 0")
	w.upload()
	w.upload() // of nothing
	w.ok(assert.ErrOf(w.v.Push(context.Background(), providers.PushOptions{})))
	log := remote.Log("main")
	var got []string
	for _, c := range log[:len(log)-before] {
		got = append(got, c.Message+" by "+c.Author.Name)
	}
	slices.Sort(got)
	assert.Slice(t, got, []string{"a, b by ", "a, c and 2 more by ", "said so by Bob"}, "commits")
}

// A file whose content cannot be read is held back, and nothing else with it.
func TestSetWithoutOneBody(t *testing.T) {
	w := newWorld(t, onlyAsked, func(_ *world, o *Options) { o.Policy.Atomic = true })
	w.do("put bad 1", "put good 2")
	w.ok(os.Remove(dataFile(t, w.o.StateDir, w.walk("bad"))))
	r := assert.Of(w.v.Commit(w.Context(), CommitOptions{})).OK(w)
	assert.True(t, len(r.HeldBack) == 1 && r.HeldBack[0].Path == "bad" && r.HeldBack[0].Reason != "", "held back", r.HeldBack)
	w.backend("good: 2")
}

// A push that finds that others have changed the same tells of it: what came,
// what is held, and what of ours went all the same.
func TestPushTellsOfConflicts(t *testing.T) {
	c := newClone(t, seeded(t, "f", "base", "g", "1"), held(Manual))
	c.get("f")
	c.do("put f ours", "put g 2")
	c.commit()
	c.there("f", "theirs")
	r := assert.Of(c.v.Push(t.Context(), providers.PushOptions{})).OK(c)
	if !r.Pushed || !r.Pull.TakenBack || r.Commit.Changes != 1 || len(r.Commit.HeldBack) != 1 ||
		!slices.Equal(r.Pull.Conflicts, []string{"f"}) || !slices.Equal(r.Commit.Conflicts, []string{"f"}) {
		t.Errorf("%+v", r)
	}
	assert.Equal(t, there(c.remote), "f: theirs, g: 2", "the remote")
}
