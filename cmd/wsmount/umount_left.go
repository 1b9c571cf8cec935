package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
)

// whatStays counts what a mount that has ended left unsent in its working copies.
// Where a daemon could still say that nothing is, they are not looked at. The error
// is that of one that cannot be read, of which the next mount and recover tell more.
func whatStays(ctx context.Context, r *state.Record, dirs []string, res *control.UnmountResult) (unread error) {
	if s, ok := lastStatus(r); ok && s.State == control.Stopped && statustext.AllSent(s) {
		return nil
	}
	for _, dir := range dirs {
		l, err := inspectEnded(ctx, dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				unread = err
			}
			continue
		}
		res.Unsent, res.Conflicts = res.Unsent+l.Total, res.Conflicts+l.Conflicts
		if l.Unpushed != nil {
			res.Unpushed += max(1, l.Unpushed.Commits)
		}
	}
	return unread
}

// inspectEnded says what the working copy in a directory holds once its daemon has ended.
// One that the next mount has taken over is InUse, and its changes are that mount's to send. A
// process that the daemon had just forked keeps the lock until it executes its program: that is
// waited for, for a while.
func inspectEnded(ctx context.Context, dir string) (leftover.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, deathLimit)
	defer cancel()
	l, err := leftover.Await(ctx, dir, 1)
	if err == nil && l.InUse && !l.Mounted {
		err = fmt.Errorf("%s: %w", dir, cache.ErrInUse)
	}
	return l, err
}

// leftBy is the last word of a mount that was at a path and ended before all was safe, as long as
// a working copy has some of that: who waits for its end may ask when it has just ended. nil:
// there is none.
func leftBy(c *cli.Context, at string) error {
	dirs, err := findCopies(c, "")
	if err != nil {
		return nil
	}
	for _, dir := range dirs {
		r := &state.Record{Dir: dir}
		var s control.Status
		if b, _, err := r.Status(); err != nil || exactjson.Unmarshal(b, &s) != nil || s.Mountpoint != at || s.NotSafe == "" {
			continue
		}
		for _, part := range copyDirs(r) {
			if l, err := inspectEnded(c.Context, part); err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && !l.Mounted && !l.Empty() {
				return control.NotSafe(s.NotSafe, s.Workspace)
			}
		}
	}
	return nil
}

// copyDirs are the directories of the working copies in a mount, as its last
// status names them.
func copyDirs(r *state.Record) []string {
	var s control.Status
	b, _, err := r.Status()
	if err == nil {
		err = exactjson.Unmarshal(b, &s)
	}
	dirs := []string{r.Dir}
	if err != nil {
		return dirs
	}
	for _, p := range s.Parts {
		if p.Copy != nil && p.Copy.StateDir != "" && !slices.Contains(dirs, p.Copy.StateDir) {
			dirs = append(dirs, p.Copy.StateDir)
		}
	}
	return dirs
}

// exportLeft copies what a mount that was ended by force has not sent to a
// place where a person finds it. It stays in the working copy, too. The error
// says that there was something.
func exportLeft(ctx context.Context, r *state.Record, dirs []string) error {
	if err := endsWithin(ctx, r, deathLimit); err != nil {
		return err
	}
	for _, dir := range dirs {
		l, err := inspectEnded(ctx, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && (l.Empty() || l.Mounted):
			continue
		case errors.Is(err, cache.ErrInUse):
			return exit.New(exit.Unsafe, "%s is unmounted, but what it has not sent cannot be looked at: %w", r.Mountpoint, err).
				Hint("`wsmount status` shows a mount that has it, and `wsmount recover` what is left when none has")
		case state.IsFull(err):
			return exit.New(exit.Unsafe, "%s is unmounted, but what it has not sent cannot be read: %w", r.Mountpoint, err).
				Hint("%s", exit.From(err).Advice)
		case err != nil:
			return exit.New(exit.Unsafe, "%s is unmounted, but what it has not sent cannot be read: %w", r.Mountpoint, err).
				Hint("%s", leftover.Advice(dir, err))
		}
		if l.Total == 0 && len(l.Recovered) == 0 {
			return exit.New(exit.Unsafe, "%s is unmounted, and not pushed: %s", r.Mountpoint, commitsText(l.Unpushed, time.Now())).
				Hint("mount the workspace again to push; %s", leftover.Ways(dir, dir))
		}
		into := filepath.Join(dir, "exported-"+time.Now().UTC().Format("20060102T150405.000"))
		got, err := leftover.Export(ctx, dir, into)
		if err != nil {
			return exit.New(exit.Unsafe, "%s is unmounted, but what it has not sent cannot be read: %w", r.Mountpoint, err).
				Hint("it is kept: `wsmount recover list %s`", dir)
		}
		more := ""
		if l.Unpushed != nil {
			more = "; not pushed: " + commitsText(l.Unpushed, time.Now())
		}
		return exit.New(exit.Unsafe, "%s is unmounted, and %s not sent: %s copied to %s%s", r.Mountpoint,
			plural(l.Total, "1 change is", fmt.Sprintf("%d changes are", l.Total)), count(len(got.Files), "file"), into, more).
			Hint("mount the workspace again to send them, or `wsmount recover upload %s`", dir)
	}
	return nil
}

// staysText says what stays in the working copies of a mount that has ended, ""
// when nothing does.
func staysText(res control.UnmountResult) string {
	changes := fmt.Sprintf("%s in the working copy, unsent%s",
		plural(res.Unsent, "1 change stays", fmt.Sprintf("%d changes stay", res.Unsent)), note(res.Conflicts > 0, count(res.Conflicts, "conflict")))
	commits := fmt.Sprintf("%s in the working copy, not pushed", plural(res.Unpushed, "1 commit stays", fmt.Sprintf("%d commits stay", res.Unpushed)))
	switch {
	case res.Unsent == 0 && res.Unpushed == 0:
		return ""
	case res.Unpushed == 0:
		commits = ""
	case res.Unsent == 0:
		changes = ""
	default:
		changes += "; "
	}
	return changes + commits + ": `wsmount recover` lists them"
}
