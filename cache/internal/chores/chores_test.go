package chores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
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

// What the store refuses is told once for each method, kind and code, whatever it is about and
// however often it succeeds in between, until it was not refused for a while; with its path,
// and the reason of it.
func TestRefusals(t *testing.T) {
	var clock time.Time
	var told []string
	r := New(Options{Now: func() time.Time { return clock }, Context: t.Context(), Halted: errors.New("halted"), Log: slog.New(slog.DiscardHandler),
		Told: func(path string, err error) { told = append(told, path+": "+err.Error()) }})
	no := func(path string, kind error, code string) error {
		return &providers.Error{Locator: providers.MustLocator(path), Kind: kind, Code: code, Err: errors.New(path + " is mine")}
	}
	for _, tt := range []struct {
		name  string
		a     Activity
		path  string
		err   error
		later time.Duration
		told  string
		fails string
	}{
		{"the first", Read, "a", no("a", providers.ErrPermission, "AccessDenied"), 0, "a: permission denied (AccessDenied): a is mine", `read fails (once): "a": permission denied (AccessDenied): a is mine`},
		{"the same of another name", Read, "b", no("b", providers.ErrPermission, "AccessDenied"), 0, "", `read fails (2 times): "b": permission denied (AccessDenied): b is mine`},
		{"another succeeds", List, "", nil, 0, "", `read fails (2 times): "b": permission denied (AccessDenied): b is mine`},
		{"it succeeds", Read, "c", nil, 0, "", ""},
		{"it is refused in between", Read, "a", no("a", providers.ErrPermission, "AccessDenied"), time.Minute, "", `read fails (once): "a": permission denied (AccessDenied): a is mine`},
		{"for another reason", Read, "a", no("a", providers.ErrPermission, "InvalidObjectState"), 0, "a: permission denied (InvalidObjectState): a is mine", `read fails (2 times): "a": permission denied (InvalidObjectState): a is mine`},
		{"by another method", List, "", no("", providers.ErrInvalid, ""), 0, ": invalid argument: is mine", "list fails (once): invalid argument: is mine"},
		{"it was not for a while", List, "", no("", providers.ErrInvalid, ""), time.Minute + 1, ": invalid argument: is mine", "list fails (2 times): invalid argument: is mine"},
		{"it was broken off", Stat, "a", context.Canceled, 0, "", "list fails (2 times): invalid argument: is mine"},
	} {
		told, clock = nil, clock.Add(tt.later)
		r.Answered(tt.a, tt.path, tt.err)
		assert.Equal(t, strings.Join(told, "; "), tt.told, tt.name)
		got := ""
		if fails := r.Failures(); len(fails) > 0 {
			got = fails[0].String()
		}
		assert.Equal(t, got, tt.fails, tt.name)
	}
}
