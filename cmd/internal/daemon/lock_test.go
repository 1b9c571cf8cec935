package daemon

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/integration/assert"
)

// A daemon whose mount was taken away is ending: the next one waits for its lock, but not
// for ever.
func TestLockOfADaemonThatEnds(t *testing.T) {
	tree := &Tree{StateRoot: t.TempDir()}
	tree.Owner, tree.Slug, tree.Fingerprint = "acme", "notes", "1"
	open := func() *state.Dir {
		dir, err := state.Open(tree.StateRoot, tree.Owner, tree.Slug, tree.Fingerprint, room.New(tree.StateRoot))
		assert.OK(t, err)
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
