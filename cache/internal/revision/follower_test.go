package revision_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table/tabletest"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// lacking hides what a provider can do beyond what a Store with a remote must.
func lacking(o *revision.Options) {
	s, _ := revision.StoreOf(o.Provider)
	pusher, _ := providers.As[providers.Pusher](o.Provider)
	o.Provider = struct {
		providers.Provider
		revision.Store
		providers.Pusher
	}{o.Provider, s, pusher}
}

func merging(o *revision.Options) { o.MergeCommits = true }

// However far a pull finds both sides apart, what was committed locally is there after it,
// with theirs, and comes to the remote with a push.
func TestPull(t *testing.T) {
	for _, x := range []struct {
		name      string
		options   func(*revision.Options)
		do        func(c *clone)
		sees      string
		dirty     int
		unpushed  int
		takenBack bool
	}{
		{"nothing", nil, func(*clone) {}, "a=1", 0, -1, false},
		{"theirs", nil, func(c *clone) { c.theirs("a", "2"); c.theirs("b", "1") }, "a=2 b=1", 0, -1, false},
		{"theirs, and a deletion", lacking, func(c *clone) { c.theirs("b", "1"); c.theirs("a", "") }, "b=1", 0, -1, false},
		{"ours", nil, func(c *clone) { c.ours("b", "x"); c.commit() }, "a=1 b=x", 0, 1, false},
		{"not committed", nil, func(c *clone) { c.ours("b", "x"); c.theirs("a", "2") }, "a=2 b=x", 1, -1, false},
		{"made anew", nil, func(c *clone) { c.ours("b", "x"); c.commit(); c.theirs("a", "2") }, "a=2 b=x", 0, 1, false},
		{"taken back", nil, func(c *clone) { c.ours("a", "x"); c.ours("b", "x"); c.commit(); c.theirs("a", "2") }, "a=x b=x", 2, 0, true},
		{"nobody makes anew", lacking, func(c *clone) { c.ours("b", "x"); c.commit(); c.theirs("c", "2") }, "a=1 b=x c=2", 1, 0, true},
		{"deletion taken back", lacking, func(c *clone) { c.ours("a", ""); c.commit(); c.theirs("c", "2") }, "c=2", 1, 0, true},
		{"merged", merging, func(c *clone) { c.ours("b", "x"); c.commit(); c.theirs("a", "2") }, "a=2 b=x", 1, 0, true},
		{"the same", nil, func(c *clone) { c.ours("a", "2"); c.commit(); c.theirs("a", "2") }, "a=2", 0, 0, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if x.options == nil {
				x.options = func(*revision.Options) {}
			}
			c := newClone(t, x.options)
			x.do(c)
			r := c.pull()
			c.sees(x.sees)
			assert.Equal(t, len(c.dirty()), x.dirty, "dirty")
			assert.Equal(t, r.TakenBack, x.takenBack, "taken back")
			c.unpushed(x.unpushed)
			again := c.pull()
			assert.Equal(t, again.Changed+len(again.Conflicts), 0, "another pull", again)
			c.commit()
			c.push()
			c.has("main", x.sees)
			c.unpushed(-1)
			assert.Equal(t, len(c.told), 0, c.told)
			assert.True(t, assert.Of(c.IsSynced(t.Context(), revision.NoHead())).OK(t), "the head is another")
		})
	}
}

// What others have taken back goes, also when something of ours is on top, or they had pushed
// it for us, and a person is told of it, once.
func TestPullOfARewrittenBranch(t *testing.T) {
	for _, x := range []struct {
		name, sees string
		ours       func(c *clone)
	}{
		{"nothing of ours", "", func(*clone) {}},
		{"committed", " b=x", func(c *clone) { c.ours("b", "x"); c.commit() }},
		{"not committed", " b=x", func(c *clone) { c.ours("b", "x") }},
		{"pushed before", " b=x", func(c *clone) { c.ours("gone too", "x"); c.commit(); c.push(); c.ours("b", "x"); c.commit() }},
	} {
		for _, a := range []string{"1", "2"} { // it is older, or another line
			c := newClone(t)
			old := assert.Of(c.repo.Head(t.Context())).OK(t)
			c.theirs("gone", "1")
			c.pull()
			x.ours(c)
			assert.OK(t, c.remote.Reset("main", old))
			if a != "1" {
				c.theirs("a", a)
			}
			c.pull()
			c.pull()
			c.sees("a=" + a + x.sees)
			assert.True(t, len(c.told) == 1 && strings.Contains(c.told[0], "was rewritten"), x.name, a, c.told)
			c.commit()
			c.push()
			c.has("main", "a="+a+x.sees)
		}
	}
}

// A pull that would halt leaves the head where it is.
func TestPullThatHalts(t *testing.T) {
	c := newClone(t)
	c.theirs("a", "2")
	c.halts = errors.New("too much")
	assert.Is(t, assert.ErrOf(c.Pull(waiting{t.Context()})), c.halts)
	c.sees("a=1")
	c.halts = nil
	c.pull()
	c.sees("a=2")
}

// Wherever a pull breaks off, the next look at the head has the table say what it has, and
// nothing of ours is lost.
func TestBrokenOff(t *testing.T) {
	broken := errors.New("broken off")
	for _, options := range []func(*revision.Options){lacking, merging, func(*revision.Options) {}} {
		for _, method := range []providers.Method{providers.MethodHead, providers.MethodAdopt, providers.MethodAt, providers.MethodDiffer, providers.MethodRebase} {
			for n := range 6 {
				c := newClone(t, options)
				c.ours("b", "x")
				c.commit()
				c.theirs("c", "2")
				dead := false
				c.after = func(m providers.Method) error {
					if m == method {
						n--
					}
					if dead = dead || n < 0; dead { // with all that follows, as of a process that is killed
						return broken
					}
					return nil
				}
				_, err := c.Pull(waiting{t.Context()})
				c.after = passes
				if err == nil {
					break // it has no more of these
				}
				assert.Is(t, err, broken)
				assert.OK(t, c.Resume(waiting{t.Context()}))
				assert.Of(c.Hold(t.Context())).OK(t).Release()
				c.pull()
				c.sees("a=1 b=x c=2")
				c.commit()
				c.push()
				c.has("main", "a=1 b=x c=2")
			}
		}
	}
}

// Before the head goes back for commits to be made anew, the disk has the note of it.
func TestSoftResetIsNotedFirst(t *testing.T) {
	c := newClone(t, lacking)
	c.ours("b", "x")
	c.commit()
	c.theirs("c", "2")
	noted := 0
	c.before = func(m providers.Method) error {
		if m == providers.MethodAdopt && noted == 0 {
			assert.True(t, tabletest.AfterPowerLoss(t, c.disk, "/tree").Get("pull/rewind") != nil, "a loss of power takes the note")
			noted++
		}
		return nil
	}
	c.pull()
	assert.Equal(t, noted, 1, "the head went back")
}

// The head stays where it is for whoever holds it, with a table that says what it has.
func TestHold(t *testing.T) {
	c := newClone(t)
	c.theirs("a", "2")
	to := assert.Of(c.repo.Fetch(t.Context())).OK(t)
	assert.OK(t, c.repo.Adopt(t.Context(), c.Synced(), to)) // as a crash leaves it
	held := assert.Of(c.Hold(t.Context())).OK(t)
	c.sees("a=2")
	assert.Equal(t, c.Synced(), to)
	held.Release()
	c.after = func(m providers.Method) error {
		if m == providers.MethodHead { // it moves on and on
			c.does(func(tx *tree.Tx) { revision.SetSynced(tx, "another", "") })
		}
		return nil
	}
	assert.Contains(t, assert.ErrOf(c.Hold(t.Context())).Error(), "keeps moving")
}

// What is not committed or not pushed is not taken out of the tree: the branch goes on from
// it, unless that is asked for otherwise. A remote that is away is no obstacle.
func TestBranch(t *testing.T) {
	for _, x := range []struct {
		name   string
		do     func(c *clone)
		o      revision.BranchOptions
		wentOn bool
		moved  bool
		sees   string
		left   int
	}{
		{"anew", func(c *clone) { c.commit(); c.push() }, revision.BranchOptions{}, false, true, "a=1 t=new", -1},
		{"uncommitted", func(*clone) {}, revision.BranchOptions{}, true, true, "a=1 n=ours", -1},
		{"unpushed", func(c *clone) { c.commit() }, revision.BranchOptions{}, true, true, "a=1 n=ours", 1},
		{"left behind", func(c *clone) { c.commit() }, revision.BranchOptions{Leave: true}, false, true, "a=1 t=new", -1},
		{"asked to stay", func(c *clone) { c.commit() }, revision.BranchOptions{Stay: true}, true, false, "a=1 n=ours", 1},
		{"asked to stay, clean", func(c *clone) { c.commit(); c.push() }, revision.BranchOptions{Stay: true}, false, true, "a=1 t=new", -1},
		{"asked to go on", func(c *clone) { c.commit(); c.push() }, revision.BranchOptions{GoOn: true}, false, true, "a=1 n=ours", -1},
		{"away", func(c *clone) {
			c.commit()
			c.push()
			c.before = func(m providers.Method) error {
				if m != providers.MethodBegin {
					return nil
				}
				c.before = passes
				return providers.ErrUnavailable
			}
		}, revision.BranchOptions{}, false, true, "a=1", -1},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newClone(t)
			branch := func(name string, o revision.BranchOptions) revision.BranchReport {
				return assert.Of(c.Branch(waiting{t.Context()}, name, o)).OK(t)
			}
			assert.True(t, branch("one", revision.BranchOptions{}).Moved, "the first")
			c.ours("n", "ours")
			x.do(c)
			c.theirs("t", "new")
			c.halts = errors.New("too much") // which is none: it stays on its branch
			r := branch("two", x.o)
			on := assert.Of(c.repo.Branches(t.Context())).OK(t).On
			assert.True(t, r.Moved == x.moved && (r.WentOn != "") == x.wentOn && (on == "two") == x.moved, r, "on", on)
			c.sees(x.sees)
			c.unpushed(x.left)
			assert.False(t, x.moved && branch("two", x.o).Moved, "it is there already")
		})
	}
}

// Where a branch could not be begun, the next pull, of something else, halts as before.
func TestBranchThatFails(t *testing.T) {
	for _, fails := range []providers.Method{providers.MethodStart, providers.MethodBranches} {
		c := newClone(t)
		asked := 0
		c.before = func(m providers.Method) error {
			if m != fails {
				return nil
			}
			if asked++; m == providers.MethodBranches && asked == 1 { // the look at where it is
				return nil
			}
			c.before = passes
			return providers.ErrPermission
		}
		c.theirs("t", "new")
		c.halts = errors.New("too much")
		_, err := c.Branch(waiting{t.Context()}, "one", revision.BranchOptions{})
		assert.Is(t, err, providers.ErrPermission, fails)
		c.theirs("t", "newer")
		assert.Is(t, assert.ErrOf(c.Pull(waiting{t.Context()})), c.halts, "a pull after", fails)
	}
}

// Another store follows no head.
func TestNoStore(t *testing.T) {
	c := newClone(t)
	files := struct{ providers.Provider }{c.repo}
	f := revision.NewFollower(revision.Options{Provider: files, Tree: c.tree, Head: revision.NewHeadLock(), Host: c, Names: c}, c.backlog)
	assert.True(t, !f.IsStore() && assert.Of(f.IsSynced(t.Context(), revision.NoHead())).OK(t), "in step")
	assert.OK(t, f.Resume(waiting{t.Context()}))
	assert.Is(t, assert.ErrOf(f.Hold(t.Context())), providers.ErrUnsupported)
	assert.False(t, assert.Of(f.Branch(waiting{t.Context()}, "one", revision.BranchOptions{})).OK(t).Moved)
	c.does(func(tx *tree.Tx) { tx.Set("pull/rewind", []byte(`{}`)) })
	assert.Is(t, f.Resume(waiting{t.Context()}), providers.ErrUnsupported)
}

// A push sends what is committed. What others have pushed before comes first, and what it
// took back is committed on top.
func TestPush(t *testing.T) {
	c := newClone(t)
	c.ours("a", "x")
	c.ours("b", "x")
	c.commit()
	c.theirs("a", "2")
	r := c.push()
	assert.True(t, r.Pushed && r.Pull.TakenBack && slices.Equal(r.Pull.Conflicts, []string{"a"}) && r.Commit.Changes == 2, r)
	c.has("main", "a=x b=x")
	c.ours("b", "y")
	c.commit()
	c.repo.Switches().Fail(providers.MethodPush, 1, providers.ErrUnavailable)
	assert.Is(t, assert.ErrOf(c.pusher.Push(t.Context(), providers.PushOptions{})), providers.ErrUnavailable)
	v := c.tree.Lock()
	u := revision.UnpushedOf(v)
	c.tree.Unlock()
	assert.True(t, u.Commits == 1 && !u.Owed.IsZero() && u.Error != "", u)
	c.push()
	c.unpushed(-1)
}

// A push counts for what it can have sent, whatever happens while it is under way.
func TestDuringAPush(t *testing.T) {
	for _, x := range []struct {
		name   string
		during func(c *clone)
		left   int
		has    string
	}{
		{"nothing", func(*clone) {}, -1, "a=1 b=x"},
		{"a commit", func(c *clone) { c.ours("c", "x"); c.commit() }, 1, "a=1 b=x"},
		{"a commit and its push", func(c *clone) { c.ours("c", "x"); c.commit(); c.push() }, -1, "a=1 b=x c=x"},
		{"a pull that makes it anew", func(c *clone) { c.theirs("t", "new"); c.pull() }, 1, "a=1 t=new"},
		{"another branch", func(c *clone) {
			assert.Of(c.Branch(waiting{c.Context()}, "one", revision.BranchOptions{GoOn: true})).OK(c)
			c.ours("c", "x")
			c.commit()
		}, 1, "a=1 b=x"},
	} {
		for _, answered := range []bool{false, true} { // it happens before the remote takes it, or after
			if strings.HasPrefix(x.name, "a pull") && answered {
				continue // the remote has it by then
			}
			t.Run(x.name, func(t *testing.T) {
				c := newClone(t)
				c.ours("b", "x")
				c.commit()
				at := &c.before
				if answered {
					at = &c.after
				}
				*at = func(m providers.Method) error {
					if m == providers.MethodPush {
						*at = passes
						x.during(c)
					}
					return nil
				}
				c.push()
				if answered {
					c.has("main", x.has)
				}
				c.unpushed(x.left, "answered", answered)
			})
		}
	}
}

// One push runs in the background, and another follows for what was committed meanwhile.
func TestPushInTheBackground(t *testing.T) {
	c := newClone(t)
	c.ours("b", "x")
	c.commit()
	c.pusher.Begin()
	pushes := 0
	c.after = func(m providers.Method) error {
		if m != providers.MethodPush {
			return nil
		}
		if pushes++; pushes == 1 {
			c.ours("c", "x")
			c.commit()
			c.pusher.Begin()
		}
		return nil
	}
	(<-c.work)()
	assert.Equal(t, pushes, 2)
	c.has("main", "a=1 b=x c=x")
	c.unpushed(-1)
	c.closed = true
	c.pusher.Begin()
	assert.Equal(t, len(c.work), 0, "begun after the end")
}
