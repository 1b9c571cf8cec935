package chores

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

// A failure is kept until the same activity has succeeded, with its first time and
// its last reason.
func TestRecord(t *testing.T) {
	var clock time.Time
	r := New(Options{Now: func() time.Time { clock = clock.Add(time.Second); return clock }, Context: t.Context(), Halted: errors.New("halted")})
	denied, away := errors.New("denied"), errors.New("away")
	for _, tt := range []struct {
		name string
		a    Activity
		err  error
		news bool
		want string // name, seconds of first and last, times and error of each
	}{
		{"nothing has failed", Pull, nil, false, ""},
		{"the first failure", Pull, denied, true, "pull 1 1 1 denied; "},
		{"the same again", Pull, denied, false, "pull 1 2 2 denied; "},
		{"for another reason", Pull, away, true, "pull 1 3 3 away; "},
		{"another activity", Commit, denied, true, "commit 4 4 1 denied; pull 1 3 3 away; "},
		{"another succeeds", Push, nil, false, "commit 4 4 1 denied; pull 1 3 3 away; "},
		{"it succeeds", Pull, nil, false, "commit 4 4 1 denied; "},
		{"it fails anew", Pull, away, true, "commit 4 4 1 denied; pull 5 5 1 away; "},
	} {
		news := r.Note(tt.a, tt.err)
		assert.True(t, news == tt.news, tt.name, "news:", news)
		got := ""
		for _, f := range r.Failures() {
			got += fmt.Sprintf("%s %d %d %d %v; ", f.Activity, f.Since.Second(), f.Last.Second(), f.Times, f.Err)
		}
		assert.Equal(t, got, tt.want, tt.name)
	}
}
