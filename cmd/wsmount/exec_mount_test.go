package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What keeps a command from being run in a mount, each by its words.
func TestExecMountRefusals(t *testing.T) {
	tier.RequireRoot(t) // to mount something in a mount
	w := mountNotes(t)
	w.mkdir("mnt/d")
	assert.OK(t, syscall.Mount("none", w.path("mnt/d"), "tmpfs", 0, ""))
	defer syscall.Unmount(w.path("mnt/d"), syscall.MNT_DETACH)
	covered := assert.Of(state.List(w.path("state"))).OK(t)[0]
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	gone := &state.Record{Workspace: "@acme/a", Mountpoint: "/mnt/a", PID: 1 << 30, Dir: t.TempDir()}
	for says, err := range map[string]error{
		"no place to mount at: ": assert.ErrOf(execMount{}.mountTied(nil, "")),
		"@acme/a is being mounted or unmounted at /mnt/a, and does not come to an end":           assert.ErrOf(join(t.Context(), gone)),
		w.path("mnt/d") + " is mounted inside " + w.path("mnt") + ", and a command would see it": assert.ErrOf(use(covered, func() {})),
		"turn-end did not end well: 1 failed, 1 conflict, 2 held back": turnFailed("turn-end",
			control.EventResult{Exit: int(exit.Conflict), Failed: []string{"x"}, Conflicts: 1, HeldBack: 2}),
	} {
		var e *exit.Error
		assert.True(t, errors.As(err, &e) && strings.Contains(e.What, says) && e.Advice != "", says, err)
	}
}
