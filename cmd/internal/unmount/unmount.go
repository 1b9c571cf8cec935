// Package unmount ends mounts: it asks the daemon or, if that is gone, does its work, waits until all
// that may be sent is, and counts and saves the changes that stay in the working copies.
//
//	dirs := unmount.CopyDirs(r)
//	res, err := unmount.Mount(ctx, r, control.UnmountRequest{}, unmount.AsLongAsItTries)
//	err = unmount.Left(ctx, r, dirs, &res)
//
// It promises that the mount of a living daemon is taken away only with its consent, by force or, of one
// that hangs, lazily, and that another mount in the place of the one that is meant stays.
package unmount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
)

// Mount asks the daemon of a mount to unmount, and waits within limit for its end as Wait does; it
// unmounts itself if no daemon answers. The error is of a mount that is left, of a daemon that has
// not ended, or says what was not safe when it ended.
func Mount(parent context.Context, r *state.Record, req control.UnmountRequest, limit time.Duration) (control.UnmountResult, error) {
	ctx, cancel := context.WithTimeout(parent, max(limit, mountpoint.EndingLimit)+control.AnswerLimit)
	defer cancel()
	if !r.Alive() {
		return Dead(r)
	}
	res, err := ask(ctx, r, req)
	dies := deathLimit
	if req.Force {
		dies = forceLimit
	}
	if control.HungUp(err) && endsWithin(ctx, r, dies) == nil {
		if res, err = Dead(r); err == nil {
			err = LastWord(r)
		}
		return res, err
	}
	hangs := err != nil && exit.From(err).Code == exit.Unreachable && parent.Err() == nil && r.Alive()
	switch {
	case hangs && req.Force:
		return hung(parent, r)
	case hangs && req.Lazy:
		return shown(r, req)
	}
	if err != nil || res.Busy || req.Lazy {
		return res, err
	}
	waits, restore := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer restore()
	stop := progress.Show(waits, r.SocketPath())
	res.HeldBy, err = Wait(waits, r, limit)
	stop()
	if err != nil || len(res.HeldBy) > 0 {
		return res, err
	}
	return res, LastWord(r)
}

// LastWord returns an error if not all was safe when the daemon of a record ended.
func LastWord(r *state.Record) error {
	if s, _ := LastStatus(r); s.NotSafe != "" {
		return control.NotSafe(s.NotSafe, r.Workspace)
	}
	return nil
}

// LastStatus is the last status that the daemon of a record wrote. Another daemon
// may have written there since: its status is not about this mount.
func LastStatus(r *state.Record) (s control.Status, ok bool) {
	b, _, err := r.Status()
	if err == nil {
		err = exactjson.Unmarshal(b, &s)
	}
	if err != nil || s.PID != r.PID {
		return control.Status{}, false
	}
	return s, true
}

// deathLimit is how long a daemon that has hung up, was killed or ends by force may take
// to be gone and release its locks.
var deathLimit = control.AnswerLimit

// forceLimit is how long --force waits for the daemon's answer, and again for its end,
// also if it has hung up. It is short: the steps after it do no more to a daemon that is
// only slow than it would do itself.
const forceLimit = 2 * time.Second

func ask(ctx context.Context, r *state.Record, req control.UnmountRequest) (control.UnmountResult, error) {
	defer waiting.For(fmt.Sprintf("waiting for the daemon of %s (pid %d) to unmount", r.Mountpoint, r.PID))()
	client := control.NewClient(r.SocketPath())
	ctx, hung := client.Answering(ctx)
	defer hung()
	if req.Force {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, forceLimit)
		defer cancel()
	}
	return client.Unmount(ctx, req)
}

// hung unmounts for a daemon that does not answer, and ends it. One that was
// only slow ends by itself once its connection is gone.
func hung(ctx context.Context, r *state.Record) (control.UnmountResult, error) {
	res, err := shown(r, control.UnmountRequest{Force: true})
	if errors.Is(err, mountpoint.ErrNotMounted) {
		res.Unmounted, err = true, nil
	}
	if err != nil || endsWithin(ctx, r, forceLimit) == nil {
		return res, err
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	if err := r.Kill(); err != nil {
		return res, err
	}
	if err := endsWithin(ctx, r, deathLimit); err != nil {
		return res, err
	}
	_ = state.Forget(r) // a new daemon may have the directory already
	return res, nil
}

func endsWithin(ctx context.Context, r *state.Record, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return waitForEnd(ctx, r)
}

// Dead removes the mount and the record that a killed daemon left.
func Dead(r *state.Record) (control.UnmountResult, error) {
	res, err := shown(r, control.UnmountRequest{Lazy: true})
	if errors.Is(err, mountpoint.ErrNotMounted) {
		res.Unmounted, err = true, nil
	}
	if err == nil {
		err = state.Forget(r)
		if errors.Is(err, fs.ErrNotExist) { // it ended by itself after all
			err = nil
		}
	}
	return res, err
}

// shown unmounts the mount of a record without its daemon's help, but no
// other mount in its place.
func shown(r *state.Record, req control.UnmountRequest) (control.UnmountResult, error) {
	if table, err := mountpoint.ReadTable(); err == nil && !table.Shows(r.Mountpoint, r.Device) {
		return control.UnmountResult{Schema: control.UnmountSchema, Mountpoint: r.Mountpoint},
			fmt.Errorf("unmount %s: %w", r.Mountpoint, mountpoint.ErrNotMounted)
	}
	return Path(r.Mountpoint, req)
}

// Path unmounts what is mounted at a path, without its daemon's help.
func Path(path string, req control.UnmountRequest) (control.UnmountResult, error) {
	res := control.UnmountResult{Schema: control.UnmountSchema, Mountpoint: path}
	table, err := mountpoint.ReadTable()
	if err != nil {
		return res, err
	}
	m, ok := table.At(path)
	if !ok || !m.Ours() { // another mount lies there now
		return res, fmt.Errorf("unmount %s: %w", path, mountpoint.ErrNotMounted)
	}
	var inside []mountpoint.Mount
	unmount := func() error { return mountpoint.Unmount(path, req.Lazy || req.Force) }
	res.WaitedFor, err = mountpoint.UntilFree(time.Duration(req.Timeout*float64(time.Second)), unmount, func() []mountpoint.Holder {
		res.Holders, inside, _ = mountpoint.Holders(m)
		return res.Holders
	})
	if mountpoint.IsBusy(err) {
		for _, i := range inside {
			res.Inside = append(res.Inside, i.Path)
		}
		res.Busy = true
		return res, nil
	}
	res.Holders = nil
	if errors.Is(err, mountpoint.ErrNotMounted) && os.Geteuid() != 0 {
		// It is in the table, so the helper means that it is not this user's.
		return res, exit.New(exit.Denied, "%s was mounted by another user", path).Hint("unmount it as that user, or as root")
	}
	if err == nil && req.Force {
		_ = mountpoint.Abort(m) // where it cannot, its requests end with the daemon
	}
	res.Unmounted = err == nil
	return res, err
}
