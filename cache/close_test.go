package cache

import (
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
)

// Close waits for a call under way, and there is none after it.
func TestCloseDuringACall(t *testing.T) {
	repository := func(w *world, o *Options) { remoteWith(memoryrepo.NewRemote(nil), "f", "0")(w, o) }
	pull := func(w *scene) error { return assert.ErrOf(w.v.Pull(w.Context(), PullOptions{})) }
	commit := func(w *scene) error { return assert.ErrOf(w.v.Commit(w.Context(), CommitOptions{})) }
	push := func(w *scene) error { return assert.ErrOf(w.v.Push(w.Context(), providers.PushOptions{})) }
	branch := func(w *scene) error { return assert.ErrOf(w.v.Branch(w.Context(), "b", BranchOptions{})) }
	for name, c := range map[string]struct {
		store func(*world, *Options)
		waits providers.Method // the call of the provider that is not answered
		call  func(*scene) error
	}{
		"a pull":                  {holding("f", "0"), providers.MethodList, pull},
		"a commit, name by name":  {holding("f", "0"), providers.MethodWrite, commit},
		"a commit, as change set": {repository, providers.MethodCommit, commit},
		"a push":                  {repository, providers.MethodPush, push},
		"a change of the branch":  {repository, providers.MethodStart, branch},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newScene(t, c.store, held(SplitConflicts))
				w.do("put f mine")
				if c.waits == providers.MethodPush {
					assert.OK(t, commit(w))
				}
				gate, reached := w.answerLate(c.waits)
				called, closed := make(chan error, 1), make(chan error, 1)
				go func() { called <- c.call(w) }()
				<-reached
				w.gone = true // by what follows
				go func() { closed <- w.v.Close() }()
				synctest.Wait()
				assert.Equal(t, len(closed), 0, "volumes that are closed before the call has ended")
				close(gate)
				assert.OK(t, <-closed)
				<-called // it has done all, or was ended
				assert.Is(t, c.call(w), providers.ErrClosed)
			})
		})
	}
}

// A call that comes after Close finds nothing, or fails; it changes nothing.
func TestCallsAfterClose(t *testing.T) {
	w := newScene(t, holding("f", "0"), held(SplitConflicts))
	w.do("put f mine")
	w.stop()
	const unknown = fs.Ino(1 << 40) // in no memory of the volume
	for name, call := range map[string]func() error{
		"attributes":       func() error { return assert.ErrOf(w.v.Attr(me, unknown, nil)) },
		"a new directory":  func() error { return assert.ErrOf(w.v.Mkdir(me, fs.RootIno, "d", 0o755)) },
		"a removal":        func() error { return w.v.Unlink(me, fs.RootIno, "f") },
		"an accepted file": func() error { return assert.ErrOf(w.v.Accept("f")) },
	} {
		assert.True(t, call() != nil, name, "after Close")
	}
	assert.Is(t, assert.ErrOf(w.v.Accept("f")), table.ErrClosed)
	w.v.Status()
	assert.Equal(t, len(w.v.Conflicts()), 0, "conflicts")
	_, _ = w.v.Log(t.Context(), LogFilter{})
	assert.OK(t, w.v.Close(), "once more")
}
