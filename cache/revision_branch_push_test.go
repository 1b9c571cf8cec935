package cache

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Commits that a pull makes anew while a push sends what they were before are not pushed
// by it.
func TestCommitsMadeAnewDuringAPush(t *testing.T) {
	c := newClone(t, seeded(t, "a", "1"))
	c.branch("one", BranchOptions{})
	c.ok(c.put("b", "ours"))
	c.commit()
	reached, gate := make(chan struct{}), make(chan struct{})
	var first sync.Once
	c.intercept(func(ctx context.Context, call *providers.Call, next func(context.Context) error) (err error) {
		if call.Method != providers.MethodPush {
			return next(ctx)
		}
		taken := false
		first.Do(func() { // it sends the head that there is when it begins, as git does
			head, _ := c.repo.Head(ctx)
			close(reached)
			<-gate
			taken, err = true, c.remote.Reset("one", head)
		})
		if taken || err != nil {
			return err
		}
		return next(ctx)
	})
	pushed := async(c.push)
	<-reached
	c.there("theirs", "2")
	c.pull()
	close(gate)
	<-pushed
	assert.False(t, c.v.Status().Unpushed == nil, "nothing is said to be unpushed")
	c.push()
	if got := strings.Join(c.remote.Dump("one"), ", "); !strings.Contains(got, `"b" file`) || !strings.Contains(got, `"theirs" file`) || c.v.Status().Unpushed != nil {
		t.Errorf("the branch has %s, unpushed is %+v", got, c.v.Status().Unpushed)
	}
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
				listed, err := c.repo.Branches(t.Context())
				c.ok(err)
				left := o.Leave && slices.ContainsFunc(listed.Unmerged, func(b providers.Branch) bool { return b.Name == "one" && !b.Pushed })
				if got := strings.Join(all, ", "); !left && (!strings.Contains(got, `"n" file`) || !strings.Contains(got, `"b" file`)) {
					t.Errorf("the remote has %s; listed are %+v", got, listed.Unmerged)
				}
				if u := c.v.Status().Unpushed; u != nil {
					t.Errorf("unpushed is %+v", u)
				}
			})
		}
	}
}
