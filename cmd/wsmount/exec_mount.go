package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/launch"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
	"github.com/wsmount/wsmount/cmd/internal/unmount"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
)

// A command's mounts are tied to it: their daemons end with the last command that
// uses them, even if that was killed, and send unsent changes first. Another
// command of the same workspace joins in, since a working copy has one daemon; a
// mount that a person made is used and stays.

const (
	// tiedStopTimeout is how long a daemon may send although no command waits for it.
	tiedStopTimeout = 10 * time.Minute
	// turnLimit limits the work that a turn event starts.
	turnLimit = 10 * time.Minute
)

// An attachment is a mount that a command uses.
type attachment struct {
	record    *state.Record
	dir       *os.File // its root
	release   func()
	notes     []string
	workspace bool // it is the workspace itself
}

type attachments []*attachment

// attachAll makes the mounts of the plan, or joins existing ones.
func (p *execPlan) attachAll(c *cli.Context) (all attachments, err error) {
	for i, m := range p.mounts {
		stop := waiting.For("mounting " + m.tree.Name)
		a, err := m.attach(c)
		stop()
		if err != nil {
			return all, err
		}
		a.workspace = m.part == ""
		all = append(all, a)
		p.notes = append(p.notes, a.notes...)
		p.spec.Mounts[i].Dir = a.dir
	}
	return all, nil
}

func (m execMount) attach(c *cli.Context) (*attachment, error) {
	place, err := state.Place(m.tree.StateRoot, m.tree.Owner, m.tree.Slug, m.tree.Fingerprint)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(control.AnswerLimit); ; { // another command's mount comes or goes
		r, err := recordOf(m.tree.StateRoot, place)
		if err == nil && r != nil && !r.Alive() {
			r, err = nil, clearDead(r)
		}
		var a *attachment
		if err == nil && r != nil {
			a, err = join(c.Context, r)
		} else if err == nil {
			a, err = m.mountTied(c, place)
		}
		if err == nil || !errors.Is(err, errTryAgain) || time.Now().After(end) {
			return a, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// errTryAgain is part of an error about a mount that comes or goes.
var errTryAgain = errors.New("")

// recordOf returns the record of the daemon of a working copy, which may be dead, or nil.
func recordOf(root, place string) (*state.Record, error) {
	records, err := state.List(root)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(records, func(r *state.Record) bool { return r.Dir == place })
	if i < 0 {
		return nil, nil
	}
	return records[i], nil
}

// clearDead removes a command's mount if its daemon was killed. A person's mount is
// removed by the next mount there.
func clearDead(r *state.Record) error {
	if !r.Tied {
		return nil
	}
	_, err := unmount.Dead(r)
	_ = os.Remove(r.Mountpoint)
	return err
}

// mountTied mounts at a directory of its own, which its daemon removes.
func (m execMount) mountTied(c *cli.Context, place string) (*attachment, error) {
	dir, err := os.MkdirTemp("", "wsmount-exec-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, exit.New(exit.Failed, "no place to mount at: %w", err).Hint("set TMPDIR to a directory that you may write")
	}
	report, tie, err := launch.Tied(context.WithoutCancel(c.Context), m.mountArgs(c, dir))
	if err != nil {
		os.Remove(dir)
		if state.Held(place) { // another command was first
			err = errors.Join(err, errTryAgain)
		}
		return nil, err
	}
	r, err := recordOf(m.tree.StateRoot, place)
	if err == nil && (r == nil || !r.Alive()) {
		err = exit.New(exit.Failed, "the daemon of %s has ended", m.tree.Name).Hint("its log is in %s", place)
	}
	if err != nil {
		tie.Close()
		return nil, err
	}
	a, err := use(r, func() { tie.Close() })
	if err == nil {
		a.notes = report.Notes
	}
	return a, err
}

// join uses an existing mount.
func join(ctx context.Context, r *state.Record) (*attachment, error) {
	s, answers := mounts.Ask(ctx, r)
	switch {
	case answers && s.State != control.Ready, !answers && !r.Alive():
		return nil, errors.Join(exit.New(exit.Failed, "%s is being mounted or unmounted at %s, and does not come to an end", r.Workspace, r.Mountpoint).
			Hint("`wsmount status` shows it"), errTryAgain)
	case !answers:
		return nil, exit.New(exit.Unreachable, "%s is mounted at %s, but its daemon (pid %d) does not answer", r.Workspace, r.Mountpoint, r.PID).
			Hint("`wsmount umount --force %s` ends it", r.Mountpoint)
	}
	release, err := control.NewClient(r.SocketPath()).Hold(context.WithoutCancel(ctx))
	if err != nil {
		return nil, errors.Join(exit.New(exit.Failed, "%w", err).Hint("`wsmount status` shows it"), errTryAgain)
	}
	return use(r, release)
}

// use opens the root of a mount. Nothing else may be mounted in it: a command would see that too.
func use(r *state.Record, release func()) (*attachment, error) {
	a := &attachment{record: r, release: release}
	table, err := mountpoint.ReadTable()
	switch {
	case err != nil:
	case !table.Shows(r.Mountpoint, r.Device):
		err = exit.New(exit.Failed, "%s is mounted at %s, which is not what is seen there from here", r.Workspace, r.Mountpoint).
			Hint("unmount it with `wsmount umount %s`, or run the command where it was mounted", r.Mountpoint)
	case len(table.Below(r.Mountpoint)) > 0:
		err = exit.New(exit.Denied, "%s is mounted inside %s, and a command would see it", table.Below(r.Mountpoint)[0].Path, r.Mountpoint).
			Hint("unmount that first")
	default:
		a.dir, err = os.OpenFile(r.Mountpoint, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	}
	if err != nil {
		release()
		return nil, err
	}
	return a, nil
}

// turn sends the workspace the event of the beginning or end of a turn. Failures
// of that are an error.
func (all attachments) turn(c *cli.Context, name string) error {
	i := slices.IndexFunc(all, func(a *attachment) bool { return a.workspace })
	if c.String("turn") == "" || i < 0 {
		return nil
	}
	r := all[i].record
	vars := map[string]string{"turnId": c.String("turn")}
	if id := c.String("conversation"); id != "" {
		vars["conversationId"] = id
	}
	stop := progress.Show(c.Context, r.SocketPath())
	res, err := control.NewClient(r.SocketPath()).Event(c.Context, control.EventRequest{Name: name, Vars: vars, Timeout: turnLimit.Seconds()})
	stop()
	if err != nil {
		return err
	}
	printNotes(c, append(res.PutOff, res.Notes...))
	if res.Exit == 0 {
		return nil
	}
	return turnFailed(name, res)
}

func turnFailed(name string, res control.EventResult) error {
	e := exit.New(exit.Code(res.Exit), "%s did not end well: %d failed, %s, %d held back", name, len(res.Failed), count(res.Conflicts, "conflict"), res.HeldBack).
		Hint("%s", statustext.EventHint(res))
	e.Details = append(res.Failed, res.ConflictPaths...)
	return e
}

// closeDirs closes the roots of the mounts, which cannot be unmounted before.
func (all attachments) closeDirs() {
	for _, a := range all {
		a.dir.Close()
	}
}

// finish releases the mounts, and waits for the end of those that no other command
// uses. The error joins those of the mounts that did not send everything.
func (all attachments) finish(c *cli.Context) (err error) {
	all.closeDirs()
	for _, a := range all {
		a.release()
	}
	for _, a := range all {
		if a.record.Tied {
			err = errors.Join(err, a.wait(c))
		}
	}
	return err
}

func (a *attachment) wait(c *cli.Context) error {
	r := a.record
	for r.Alive() {
		s, answers := mounts.Ask(c.Context, r)
		if answers && len(s.UsedBy) > 0 && !slices.Contains(s.UsedBy, os.Getpid()) {
			return nil // others go on with it
		}
		if !answers || len(s.UsedBy) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	dirs := unmount.CopyDirs(r)
	stop := progress.Show(c.Context, r.SocketPath())
	held, err := unmount.Wait(c.Context, r, unmount.AsLongAsItTries)
	stop()
	if err != nil || len(held) > 0 {
		return err
	}
	if err := unmount.LastWord(r); err != nil {
		return err
	}
	var left control.UnmountResult
	_ = unmount.Left(c.Context, r, dirs, &left) // only LastWord counts as an error
	text := unmount.StaysText(left)
	if s, _ := unmount.LastStatus(r); s.State != control.Stopped {
		return errors.Join(exit.New(exit.Unsafe, "the daemon of %s (pid %d) was killed: what it had not sent is kept%s", r.Workspace, r.PID, note(text != "", text)).
			Hint("run a command again, or mount the workspace, to send it"), clearDead(r))
	}
	if text != "" {
		printNotes(c, []string{text})
	}
	return nil
}
