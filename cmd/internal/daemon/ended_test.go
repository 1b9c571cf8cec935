package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/answers"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// Credentials that cannot be had fail in the status, until they can be had again; so
// does what a store does by itself. Before there is a working copy nothing is kept.
func TestWorkOfAStoreIsInTheStatus(t *testing.T) {
	w := &workingCopy{}
	var fails error
	kept := answers.New(time.Now)
	credentials := noting(&atomic.Bool{}, Env{Ended: w.ended, Answers: kept}, func(context.Context) (map[string]string, error) {
		return map[string]string{"expiration": "2030-01-02T03:04:05Z"}, fails
	})
	ask := func(err error) {
		t.Helper()
		fails = err
		if _, got := credentials(t.Context()); !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
	}
	failing := func() (all []cache.Activity) {
		for _, f := range w.opened.Load().Status().Failing {
			all = append(all, f.Activity)
		}
		return all
	}
	away := errors.New("the vault is away")
	ask(away)
	v, err := cache.Open(t.Context(), memory.New(memory.Options{}), cache.Options{StateDir: t.TempDir(), Provider: "memory"})
	assert.OK(t, err)
	defer v.Close()
	w.opened.Store(v)
	if got := failing(); len(got) > 0 {
		t.Errorf("at first: %v", got)
	}
	ask(away)
	w.ended("attribute index", away)
	if got := failing(); len(got) != 2 || got[0] != "attribute index" || got[1] != cache.ActivityCredentials {
		t.Errorf("while both fail: %v", got)
	}
	ask(nil)
	w.ended("attribute index", nil)
	if got := failing(); len(got) > 0 {
		t.Errorf("after both have succeeded: %v", got)
	}
	assert.Equal(t, kept.Summary().CredentialFailures, 2, "failures of credentials")
	assert.Equal(t, kept.Summary().CredentialsExpire, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), "they expire")
}

// A working copy that is closed, or just being closed, gives up nothing, and whoever
// asks for room does not wait for that.
func TestClosedWorkingCopyMakesNoRoom(t *testing.T) {
	v, err := cache.Open(t.Context(), memory.New(memory.Options{}), cache.Options{StateDir: t.TempDir(), Provider: "memory"})
	assert.OK(t, err)
	w := &workingCopy{Volume: v}
	w.mu.Lock()
	if w.MakeRoom(1) || w.ContentUsage() != (cache.ContentUsage{}) {
		t.Error("one that is being closed makes room")
	}
	w.closed = true
	w.mu.Unlock()
	assert.OK(t, v.Close())
	if w.MakeRoom(1) || w.ContentUsage() != (cache.ContentUsage{}) {
		t.Error("a closed one makes room")
	}
}
