package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// Who wants a mount that another is just making waits for that as long as it takes, and
// tries it again; who cannot have it is told why at once.
func TestStartedByOther(t *testing.T) {
	var lives state.Record
	assert.OK(t, lives.Identify())
	lives.Mountpoint = "/elsewhere"
	failed := exit.New(exit.Failed, "no such store")
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		err   error
		again bool
		want  error
	}{
		{"it is starting", t.Context(), &state.LockedError{}, true, nil},
		{"it is starting where one was killed", t.Context(), &state.LockedError{Holder: &state.Record{PID: 1 << 30}}, true, nil},
		{"nobody waits any more", interrupted, &state.LockedError{}, true, context.Canceled},
		{"another failure", t.Context(), failed, false, failed},
	} {
		again, err := (&Tree{Mountpoint: "/mnt"}).StartedByOther(tt.ctx, tt.err)
		assert.Equal(t, again, tt.again, tt.name)
		assert.Is(t, err, tt.want, tt.name)
	}
	elsewhere := &state.LockedError{Holder: &lives}
	again, err := (&Tree{Mountpoint: "/mnt"}).StartedByOther(t.Context(), elsewhere)
	assert.False(t, again, "another mount point")
	assert.Is(t, err, elsewhere, "another mount point")
}

// A daemon whose mount was taken away is ending: the next one waits for its lock, but not
// for ever.
func TestLockOfADaemonThatEnds(t *testing.T) {
	tree := &Tree{StateRoot: filepath.Join(t.TempDir(), "state")} // made as its own, whatever the umask is here
	tree.Owner, tree.Slug, tree.Fingerprint = "acme", "notes", "1"
	open := func() *state.Dir {
		dir := assert.Of(state.Open(tree.StateRoot, tree.Owner, tree.Slug, tree.Fingerprint, room.New(tree.StateRoot))).OK(t)
		r := state.Record{Mountpoint: t.TempDir(), Device: "0:0"} // where nothing is mounted
		assert.OK(t, r.Identify())
		assert.OK(t, dir.SaveRecord(r))
		return dir
	}
	for _, ends := range []time.Duration{lockLimit / 2, 2 * lockLimit} {
		synctest.Test(t, func(t *testing.T) {
			last := open()
			time.AfterFunc(ends, func() { last.Close() })
			next := &Daemon{tree: tree, room: room.New(tree.StateRoot)}
			var locked *state.LockedError
			switch err := next.lock(t.Context()); {
			case ends < lockLimit:
				assert.OK(t, err)
				assert.OK(t, next.dir.Close())
			case !errors.As(err, &locked):
				t.Errorf("got error %v", err)
			}
			time.Sleep(2 * lockLimit) // until all has ended
		})
	}
}

// A mount that another state directory knows of is waited for as long as a daemon may take to
// answer.
func TestMountOfAnotherStateDirectory(t *testing.T) {
	tier.RequireFUSE(t)
	d := running(t, nil)
	other := &Tree{Name: d.tree.Name, Mountpoint: d.tree.Mountpoint, StateRoot: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		gone, err := other.awaitOther(t.Context())
		assert.True(t, !gone && err != nil && exit.From(err).Advice != "", gone, err)
		assert.Contains(t, err.Error(), "a mount of @acme/a is there or starting, but no daemon of it says so")
	})
	assert.OK(t, d.server.Unmount())
	assert.OK(t, d.Run(nil))
}
