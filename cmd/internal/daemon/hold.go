package daemon

import (
	"context"
	"slices"
	"sync"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec/host"
)

// users counts the holders of a tied mount: the commands that run in it, the first of which has it
// made. A mount that a person made has no holders, and does not end with them.
type users struct {
	mu   sync.Mutex    // guards pids
	pids []int         // a process is in it once for each of its holds
	none chan struct{} // closed when the last one has left
}

// Hold makes the process a user of a tied mount until release. The error says that
// the last user has left, so that the mount ends.
func (d *Daemon) Hold(pid int) (release func(), err error) {
	if !d.opts.Tied {
		return func() {}, nil
	}
	u := &d.users
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.none:
		return nil, exit.New(exit.Failed, "the mount at %s ends: the last command in it has ended", d.tree.Mountpoint).Hint("run it again")
	default:
	}
	u.pids = append(u.pids, pid)
	return sync.OnceFunc(func() { u.leave(pid) }), nil
}

func (u *users) leave(pid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.pids, pid)
	if u.pids = slices.Delete(u.pids, i, i+1); len(u.pids) == 0 {
		close(u.none)
	}
}

func (u *users) list() []int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.pids)
}

// Sandbox returns the environment of a command in the workspace of a tree.
func (t *Tree) Sandbox(ctx context.Context) (*host.Sandbox, error) {
	got, err := t.host.Sandbox(ctx, t.Sources[0].resolved)
	if err != nil {
		return nil, Refusal(err)
	}
	return got, nil
}
