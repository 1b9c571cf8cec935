package statustext

import (
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
	}{
		{"nothing", part(control.Part{Copy: &control.Copy{}}), true},
		{"bytes", control.Status{UnsavedBytes: 1}, false},
		{"a name", part(control.Part{Unsaved: control.Unsaved{Names: 1}}), false},
		{"what a policy keeps", part(control.Part{HeldBack: 1}), false},
		{"a conflict", control.Status{ConflictsTotal: 1}, false},
		{"a commit that is not pushed", part(control.Part{Copy: &control.Copy{Unpushed: true}}), false},
	} {
		assert.Equal(t, AllSent(c.s), c.want, c.what)
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
