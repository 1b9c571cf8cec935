package cache

import (
	"context"
	"fmt"
	"github.com/wsmount/wsmount/providers/providertest"
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// newBranched is a clone of a repository that others change.
func newBranched(t *testing.T) *clone {
	t.Helper()
	return newClone(t, seeded(t, "a", "1", "d/b", "2"))
}

// on is the branch beside the tracked one that it is on.
func (c *clone) on() string {
	c.Helper()
	all, err := c.repo.Branches(c.Context())
	c.ok(err)
	return all.On
}

func (c *clone) branch(name string, o BranchOptions) BranchReport {
	c.Helper()
	r, err := c.v.Branch(context.Background(), name, o)
	c.ok(err)
	return r
}

// A branch begins where the tracked one is, whatever was committed on another:
// that is there again when its branch is gone back to. That all but everything
// goes from the tree by this is no reason to halt.
func TestBranchBeginsAnew(t *testing.T) {
	c := newBranched(t)
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
	c.push()
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
	if r := c.branch("one", BranchOptions{}); r.Moved || c.on() != "one" {
		t.Errorf("where it is already: %+v, on %s", r, c.on())
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
		{"asked to stay, clean", func(c *clone) { c.commit(); c.push() }, BranchOptions{Stay: true}, false, []string{"a: 1", "d/", "d/b: 2", "theirs: new"}},
		{"asked to", func(c *clone) { c.commit(); c.push() }, BranchOptions{GoOn: true}, false, []string{"a: 1", "d/", "d/b: 2", "n: ours"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newBranched(t)
			c.branch("one", BranchOptions{})
			c.ok(c.put("n", "ours"))
			x.prepare(c)
			c.there("theirs", "new")
			stays := x.name == "asked to stay"
			if r := c.branch("two", x.o); r.Moved == stays || (r.WentOn != "") != x.wentOn || (c.on() == "two") == stays {
				t.Errorf("report %+v, on %s", r, c.on())
			}
			c.sees(x.sees...)
			assert.Equal(t, c.v.Status().Unpushed != nil, stays || x.name == "unpushed", "unpushed")
		})
	}
}

// When the remote is away, a branch begins where the tracked one was last.
func TestBranchOffline(t *testing.T) {
	c := newBranched(t)
	c.branch("one", BranchOptions{})
	c.ok(c.put("n", "ours"))
	c.commit()
	c.push()
	c.there("theirs", "new")
	c.faults.Queue(providers.MethodBegin, providertest.Fault{Before: providers.ErrUnavailable})
	if r := c.branch("two", BranchOptions{}); !r.Moved || r.WentOn != "" {
		t.Errorf("report %+v", r)
	}
	c.sees("a: 1", "d/", "d/b: 2")
}
