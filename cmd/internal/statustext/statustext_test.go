package statustext

import (
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/integration/assert"
)

// A mount has something to lose as long as its stores, or their remotes, lack anything.
func TestAllSent(t *testing.T) {
	part := func(p control.Part) control.Status { return control.Status{Parts: []control.Part{{}, p}} }
	for _, c := range []struct {
		what string
		s    control.Status
		want bool
		left string
	}{
		{"nothing", part(control.Part{Copy: &control.Copy{}}), true, ""},
		{"bytes", control.Status{UnsavedBytes: 1}, false, ""},
		{"a name", part(control.Part{Name: "@a/b", Unsaved: control.Unsaved{Names: 1}, Copy: &control.Copy{LastError: "too large", Away: "gone"}}), false, "@a/b: 1 change is not sent: too large"},
		{"what a policy keeps", part(control.Part{HeldBack: 1}), false, ""},
		{"a conflict", control.Status{ConflictsTotal: 1}, false, ""},
		{"a commit that is not pushed", part(control.Part{Copy: &control.Copy{Unpushed: true, Failing: []control.Failing{{Activity: "pull", Error: "no"}, {Activity: "push", Error: "refused"}}}}), false, ": commits are not pushed: refused"},
		{"both", part(control.Part{Unsaved: control.Unsaved{Names: 2}, Copy: &control.Copy{Unpushed: true, UnpushedCommits: 3, Away: "gone"}}), false, ": 2 changes are not sent, 3 commits are not pushed: gone"},
	} {
		assert.Equal(t, AllSent(c.s), c.want, c.what)
		assert.Equal(t, strings.Join(Left(c.s), "\n"), c.left, c.what)
	}
}

// A branch says how many commits wait in it; the tracked one, which lacks none of its own, only
// that it is not pushed.
func TestBranches(t *testing.T) {
	var got []string
	Part(func(name, value string) {
		if name == "unmerged" {
			got = append(got, value)
		}
	}, control.Part{Copy: &control.Copy{Branches: []control.Branch{{Name: "main"}, {Name: "next", Commits: 1, Pushed: true}, {Name: "more", Commits: 2}}}}, time.Now())
	assert.Slice(t, got, []string{"main (not pushed)", "next, 1 commit", "more, 2 commits (not pushed)"})
}
