package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/inplace"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// The mount table alone cannot tell whether a workspace "is mounted already": a mount is in it
// before its daemon is ready, and after its daemon hangs. So the daemon is asked.

// askEvery is the interval at which another daemon, or its lock, is looked at again.
const askEvery = 20 * time.Millisecond

// StartedByOther is called with the error of Start. If err says that another daemon has started
// for the same place meanwhile, it waits until that is ready, and sets t.Mounted; else it returns
// err. again says that Start is to be tried again: the holder of the working copy is only
// starting, which takes as long as its stores take and may fail, or it has ended.
func (t *Tree) StartedByOther(ctx context.Context, err error) (again bool, _ error) {
	var locked *state.LockedError
	if !errors.As(err, &locked) {
		return false, err
	}
	if locked.Holder == nil || !locked.Holder.Alive() { // the record is of an earlier holder
		return true, pause(ctx)
	}
	if locked.At != "" || locked.Holder.Mountpoint != t.Mountpoint || len(inplace.OutOfSight(locked.Holder)) > 0 {
		return false, err
	}
	return t.awaitOther(ctx)
}

// awaitOther waits until a daemon that answers serves this workspace at the place, and
// sets t.Mounted then. gone says that nothing is mounted there any more.
func (t *Tree) awaitOther(ctx context.Context) (gone bool, err error) {
	for end := time.Now().Add(control.AnswerLimit); time.Now().Before(end); {
		r := mounts.Serving(t.StateRoot, t.Name, t.Mountpoint)
		switch {
		case r != nil:
			if t.Mounted, err = t.answers(ctx, r); err != nil || t.Mounted {
				return false, err
			}
		case !t.mountedThere():
			return true, nil
		}
		if err := pause(ctx); err != nil {
			return false, err
		}
	}
	return false, exit.New(exit.Failed, "%s: a mount of %s is there or starting, but no daemon of it says so", t.Mountpoint, t.Name).
		Hint("see `wsmount status`, and give --state-dir as it was given to that mount")
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(askEvery):
	}
	return ctx.Err()
}

// answers asks a daemon whether it is ready. That it does not answer is an
// error, unless it has just ended.
func (t *Tree) answers(ctx context.Context, r *state.Record) (ready bool, err error) {
	s, answers := mounts.Ask(ctx, r)
	switch {
	case answers:
		ready = s.State == control.Ready && inplace.IsStanding(r)
		if t.MountedReadOnly = s.ReadOnly; ready && s.Lasting != t.ReadOnly() {
			t.note("it is mounted %s already, and stays so until it is unmounted", map[bool]string{true: "read-only", false: "read-write"}[s.Lasting])
		}
		return ready, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case !r.Alive():
		return false, nil
	}
	return false, exit.New(exit.Unreachable, "%s is mounted at %s, but its daemon (pid %d) does not answer", t.Name, t.Mountpoint, r.PID).
		Hint("`wsmount umount --force %s` ends it", t.Mountpoint)
}

// lock locks the state directory, or returns an error that names the holder.
func (d *Daemon) lock(context.Context) error {
	var dir *state.Dir
	var err error
	var locked *state.LockedError
	ending := false // stays so: the last that a daemon does is to remove its record
	for try := 0; ; try++ {
		dir, err = state.Open(d.tree.StateRoot, d.tree.Owner, d.tree.Slug, d.tree.Fingerprint, d.room)
		ending = ending || errors.As(err, &locked) && dying(locked.Holder)
		if err == nil || !ending || try == lockTries {
			break
		}
		time.Sleep(lockLimit / lockTries)
	}
	if errors.As(err, &locked) {
		e := exit.New(exit.Failed, "%w", err)
		if away := inplace.OutOfSight(locked.Holder); len(away) > 0 {
			return e.Hint("another mount namespace still has it, that of %s: end that, or `wsmount umount --force %s`",
				mountpoint.Names(away), locked.Holder.Mountpoint)
		}
		if locked.Holder != nil && !inplace.IsStanding(locked.Holder) {
			return e.Hint("it is out of sight, and sends what is unsaved, or files in it are open, or it hangs; `wsmount umount %s` waits, `wsmount umount --force %[1]s` ends it", locked.Holder.Mountpoint)
		}
		if locked.Holder != nil {
			return e.Hint("use it there, or unmount it with `wsmount umount %s`", locked.Holder.Mountpoint)
		}
		return e.Hint("wait for it, then see `wsmount status`")
	}
	if err != nil {
		return err
	}
	d.dir = dir
	d.onClose(dir.Close)
	return nil
}

// dying reports whether the daemon of a record has been killed, or its mount
// taken away, and it only has to end yet.
func dying(r *state.Record) bool {
	if r == nil || !r.Alive() {
		return r != nil
	}
	if !inplace.IsStanding(r) {
		return len(mountpoint.Elsewhere(r.Device)) == 0
	}
	return mountpoint.Stale(r.Mountpoint)
}
