package cache

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// branched is a repository with branches of its own, of which it knows only
// where they are here.
type branched struct {
	*memory.Repository
	on   string
	at   map[string]providers.Revision
	away bool // the remote does not answer
}

func (b *branched) Capabilities() providers.Capabilities {
	c := b.Repository.Capabilities()
	c.Abilities |= providers.AbilityBranch
	return c
}

func (b *branched) Branches(ctx context.Context) (providers.Branches, error) {
	all, err := b.Repository.Branches(ctx)
	return providers.Branches{On: b.on, Tip: all.Tip}, err
}

func (b *branched) Begin(ctx context.Context, name string, ask bool) (providers.Revision, error) {
	switch at, known := b.at[name]; {
	case ask && b.away:
		return "", providers.ErrUnavailable
	case known:
		return at, nil
	case ask:
		tip, err := b.Fetch(ctx)
		b.at["tracked"] = tip
		return tip, err
	}
	return b.at["tracked"], nil
}

func (b *branched) Start(ctx context.Context, name string, from, to providers.Revision) error {
	b.at[b.on] = from
	if err := b.Adopt(ctx, from, to); err != nil {
		return err
	}
	b.on = name
	return nil
}

func (b *branched) Propose(context.Context, string, providers.PullRequest) (string, error) {
	return "", providers.ErrUnsupported
}

func newBranched(t *testing.T) (*clone, *branched) {
	t.Helper()
	remote := seeded(t, "a", "1", "d/b", "2")
	c := newClone(t, remote)
	c.stop()
	b := &branched{Repository: memory.NewRepository(remote, memory.Options{}), at: map[string]providers.Revision{}}
	c.repo, c.o.StateDir = b.Repository, t.TempDir()
	v, err := Open(context.Background(), c.faults.Wrap(b), c.o)
	assert.OK(t, err)
	c.v, c.gone = v, false
	return c, b
}

func (c *clone) branch(name string, o BranchOptions) BranchReport {
	c.Helper()
	r, err := c.v.Branch(context.Background(), name, o)
	c.ok(err)
	return r
}

func (c *clone) pushTo(name string) {
	c.Helper()
	_, err := c.v.Push(context.Background(), providers.PushOptions{Branch: name})
	c.ok(err)
}

// A branch begins where the tracked one is, whatever was committed on another:
// that is there again when its branch is gone back to. That all but everything
// goes from the tree by this is no reason to halt.
func TestBranchBeginsAnew(t *testing.T) {
	c, b := newBranched(t)
	if r := c.branch("one", BranchOptions{}); !r.Moved || r.WentOn != "" {
		t.Errorf("the first: %+v", r)
	}
	var all []string
	for i := range 40 {
		name := fmt.Sprintf("one%02d", i)
		all = append(all, name+": x")
		c.ok(c.put(name, "x"))
	}
	c.commit()
	c.pushTo("one")
	c.there("theirs", "new")
	if r := c.branch("two", BranchOptions{}); !r.Moved || r.WentOn != "" || r.Pull.Deleted != 40 {
		t.Errorf("the second: %+v", r)
	}
	c.sees("a: 1", "d/", "d/b: 2", "theirs: new")
	if s := c.v.Status(); s.Unpushed != nil || len(s.Halted) > 0 || s.Queued > 0 {
		t.Errorf("after it: %+v", s)
	}
	c.branch("one", BranchOptions{})
	c.sees(slices.Concat([]string{"a: 1", "d/", "d/b: 2"}, all)...)
	if r := c.branch("one", BranchOptions{}); r.Moved || b.on != "one" {
		t.Errorf("where it is already: %+v, on %s", r, b.on)
	}
}

// What is not committed or not pushed is not taken out of the tree: the branch
// goes on from it, and the report says so.
func TestBranchGoesOn(t *testing.T) {
	for _, x := range []struct {
		name    string
		prepare func(c *clone)
		o       BranchOptions
		wentOn  bool
		sees    []string
	}{
		{"uncommitted", func(c *clone) {}, BranchOptions{}, true, []string{"a: 1", "d/", "d/b: 2", "n: ours"}},
		{"unpushed", func(c *clone) { c.commit() }, BranchOptions{}, true, []string{"a: 1", "d/", "d/b: 2", "n: ours"}},
		{"left behind", func(c *clone) { c.commit() }, BranchOptions{Leave: true}, false, []string{"a: 1", "d/", "d/b: 2", "theirs: new"}},
		{"asked to stay", func(c *clone) { c.commit() }, BranchOptions{Stay: true}, true, []string{"a: 1", "d/", "d/b: 2", "n: ours"}},
		{"asked to stay, clean", func(c *clone) { c.commit(); c.pushTo("one") }, BranchOptions{Stay: true}, false, []string{"a: 1", "d/", "d/b: 2", "theirs: new"}},
		{"asked to", func(c *clone) { c.commit(); c.pushTo("one") }, BranchOptions{GoOn: true}, false, []string{"a: 1", "d/", "d/b: 2", "n: ours"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, b := newBranched(t)
			c.branch("one", BranchOptions{})
			c.ok(c.put("n", "ours"))
			x.prepare(c)
			c.there("theirs", "new")
			stays := x.name == "asked to stay"
			if r := c.branch("two", x.o); r.Moved == stays || (r.WentOn != "") != x.wentOn || (b.on == "two") == stays {
				t.Errorf("report %+v, on %s", r, b.on)
			}
			c.sees(x.sees...)
			assert.Equal(t, c.v.Status().Unpushed != nil, stays || x.name == "unpushed", "unpushed")
		})
	}
}

// When the remote is away, a branch begins where the tracked one was last.
func TestBranchOffline(t *testing.T) {
	c, b := newBranched(t)
	c.branch("one", BranchOptions{})
	c.ok(c.put("n", "ours"))
	c.commit()
	c.pushTo("one")
	c.there("theirs", "new")
	b.away = true
	if r := c.branch("two", BranchOptions{}); !r.Moved || r.WentOn != "" {
		t.Errorf("report %+v", r)
	}
	c.sees("a: 1", "d/", "d/b: 2")
}
