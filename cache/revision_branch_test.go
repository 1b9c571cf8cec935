package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	all := assert.Of(c.repo.Branches(c.Context())).OK(c)
	return all.On
}

func (c *clone) branch(name string, o BranchOptions) BranchReport {
	c.Helper()
	r := assert.Of(c.v.Branch(context.Background(), name, o)).OK(c)
	return r
}

// A branch begins where the tracked one is, whatever was committed on another:
// that is there again when its branch is gone back to. That all but everything
// goes from the tree by this is no reason to halt.
func TestBranchBeginsAnew(t *testing.T) {
	c := newBranched(t)
	r := c.branch("one", BranchOptions{})
	assert.True(t, r.Moved && r.WentOn == "", "the first", r)
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprintf("one%02d: x", i))
	}
	c.doEach(0, 40, "put one%02d x")
	c.commit()
	c.push()
	c.there("theirs", "new")
	r = c.branch("two", BranchOptions{})
	assert.True(t, r.Moved && r.WentOn == "" && r.Pull.Deleted == 40, "the second", r)
	c.sees("a: 1", "d/", "d/b: 2", "theirs: new")
	s := c.v.Status()
	assert.True(t, s.Unpushed == nil && len(s.Halted) == 0 && s.Queued == 0, "after it", s)
	c.branch("one", BranchOptions{})
	c.sees(slices.Concat([]string{"a: 1", "d/", "d/b: 2"}, all)...)
	assert.False(t, c.branch("one", BranchOptions{}).Moved, "it is there already")
	assert.Equal(t, c.on(), "one")
}

// What a push sends to a branch is not taken for the tracked one's when commits go to
// that meanwhile: a pull takes nothing back.
func TestTrackedAgainDuringAPush(t *testing.T) {
	c := newClone(t, seeded(t, "a", "1"))
	c.branch("one", BranchOptions{})
	c.ok(c.put("b", "ours"))
	c.commit()
	gate, reached := c.answerLate(providers.MethodPush)
	pushed := async(c.push)
	<-reached
	c.branch("", BranchOptions{GoOn: true})
	close(gate)
	<-pushed
	c.pull()
	c.sees("a: 1", "b: ours")
}

// What is committed while another branch is begun, or while the last push of the one
// before is under way, is pushed in the end.
func TestCommitDuringABranch(t *testing.T) {
	for _, m := range []providers.Method{providers.MethodPush, providers.MethodBegin, providers.MethodStart} {
		for name, o := range map[string]BranchOptions{"anew": {}, "goes on": {GoOn: true}, "leaves": {Leave: true}} {
			if m == providers.MethodBegin && o.GoOn {
				continue // it asks nothing
			}
			t.Run(string(m)+"/"+name, func(t *testing.T) {
				c := newClone(t, seeded(t, "a", "1"))
				c.branch("one", BranchOptions{})
				c.ok(c.put("b", "ours"))
				c.commit()
				gate, reached := c.answerLate(m)
				open := sync.OnceFunc(func() { close(gate) })
				defer open()
				if m != providers.MethodPush {
					c.push()
				}
				busy := async(func() {
					if m == providers.MethodPush {
						c.push()
					} else {
						c.branch("two", o)
					}
				})
				<-reached
				c.ok(c.put("n", "new"))
				committed := async(func() { c.commit() }) // which a branch that begins may have wait
				if m == providers.MethodPush {
					<-committed
					c.branch("two", o)
				}
				open()
				<-busy
				<-committed
				if c.v.Status().Unpushed != nil {
					c.push()
				}
				var all []string
				for _, branch := range []string{"one", "two"} {
					if at := c.remote.Branches()[branch]; at != "" {
						all = append(all, c.remote.Dump(branch)...)
					}
				}
				listed := assert.Of(c.repo.Branches(t.Context())).OK(c)
				left := o.Leave && slices.ContainsFunc(listed.Unmerged, func(b providers.Branch) bool { return b.Name == "one" && !b.Pushed })
				got := strings.Join(all, ", ")
				both := strings.Contains(got, `"n" file`) && strings.Contains(got, `"b" file`)
				assert.True(t, left || both, "the remote has", got, "listed are", listed.Unmerged)
				c.unpushed(0)
			})
		}
	}
}
