package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// Whether a workspace "is mounted already" is not for the mount table alone to
// say: a mount stands there before its daemon is ready, and after its daemon
// hangs. So the daemon is asked.

const (
	otherLimit  = 10 * time.Second        // for another daemon to become ready
	answerLimit = 1200 * time.Millisecond // for it to answer
	askEvery    = 20 * time.Millisecond
)

// StartedByOther is called with the error of Start. Where it says that another
// daemon is starting for the same place, or has started meanwhile, it waits until
// that is ready, and sets t.Mounted; it returns err otherwise.
func (t *Tree) StartedByOther(ctx context.Context, err error) error {
	var locked *state.LockedError
	if !errors.As(err, &locked) || locked.Holder != nil && (locked.Holder.Mountpoint != t.Mountpoint || len(outOfSight(locked.Holder)) > 0) {
		return err
	}
	return t.awaitOther(ctx, true)
}

// awaitOther returns nil, with t.Mounted set, once a daemon that answers serves
// this workspace at the place. starting says that nothing need be mounted there
// yet.
func (t *Tree) awaitOther(ctx context.Context, starting bool) error {
	for end := time.Now().Add(otherLimit); time.Now().Before(end); {
		switch r := t.other(); {
		case r != nil:
			ready, err := t.answers(ctx, r)
			if err != nil {
				return err
			}
			if ready {
				t.Mounted = true
				return nil
			}
		case !starting && !t.mountedThere():
			return exit.New(exit.Failed, "%s was unmounted from %s meanwhile", t.Name, t.Mountpoint).Hint("run it again")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askEvery):
		}
	}
	return exit.New(exit.Failed, "%s: a mount of %s is there or starting, but no daemon of it says so", t.Mountpoint, t.Name).
		Hint("see `wsmount status`, and give --state-dir as it was given to that mount")
}

// other is the record of a living daemon that serves this workspace at the
// place, or nil.
func (t *Tree) other() *state.Record {
	records, err := state.List(t.StateRoot)
	if err != nil {
		return nil
	}
	for _, r := range records {
		if r.Workspace == t.Name && r.Mountpoint == t.Mountpoint && r.Alive() {
			return r
		}
	}
	return nil
}

// answers asks a daemon whether it is ready. That it does not answer is an
// error, unless it has just ended.
func (t *Tree) answers(ctx context.Context, r *state.Record) (ready bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	s, err := control.NewClient(r.SocketPath()).Status(ctx)
	switch {
	case err == nil:
		ready = s.State == control.Ready && standing(r)
		if t.MountedReadOnly = s.ReadOnly; ready && s.ReadOnly != t.ReadOnly() {
			t.note("it is mounted %s already, and stays so until it is unmounted", map[bool]string{true: "read-only", false: "read-write"}[s.ReadOnly])
		}
		return ready, nil
	case !r.Alive():
		return false, nil
	}
	return false, exit.New(exit.Unreachable, "%s is mounted at %s, but its daemon (pid %d) does not answer", t.Name, t.Mountpoint, r.PID).
		Hint("`wsmount umount --force %s` ends it", t.Mountpoint)
}
