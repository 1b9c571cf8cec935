package unmount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/statustext"
)

// Left counts the unsent changes that an ended mount left in its working copies. They are not
// inspected if the daemon's last status says that there are none. The error is of a working copy
// that cannot be read; the next mount and recover tell more of it.
func Left(ctx context.Context, r *state.Record, dirs []string, res *control.UnmountResult) (unread error) {
	if s, ok := LastStatus(r); ok && s.State == control.Stopped && statustext.AllSent(s) {
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

// inspectEnded reports the content of the working copy in a directory after its daemon has
// ended. If the next mount has taken it over it is InUse, and that mount sends its changes. A
// process that the daemon had just forked keeps the lock until it executes its program:
// inspectEnded waits for that, for deathLimit at most.
func inspectEnded(ctx context.Context, dir string) (leftover.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, deathLimit)
	defer cancel()
	l, err := leftover.Await(ctx, dir, 1)
	if err == nil && l.InUse && !l.Mounted {
		err = fmt.Errorf("%s: %w", dir, cache.ErrInUse)
	}
	return l, err
}

// LeftAt is LastWord of a mount that was at a path and ended before all was
// safe, while one of the working copies in dirs still holds unsafe changes of it: a caller that
// waits for its end may come just after it. nil: no such mount.
func LeftAt(ctx context.Context, dirs []string, at string) error {
	for _, dir := range dirs {
		r := &state.Record{Dir: dir}
		var s control.Status
		if b, _, err := r.Status(); err != nil || exactjson.Unmarshal(b, &s) != nil || s.Mountpoint != at || s.NotSafe == "" {
			continue
		}
		for _, part := range CopyDirs(r) {
			if l, err := inspectEnded(ctx, part); err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && !l.Mounted && !l.Empty() {
				return control.NotSafe(s.NotSafe, s.Workspace)
			}
		}
	}
	return nil
}

// CopyDirs are the directories of the working copies in a mount, as its last
// status names them.
func CopyDirs(r *state.Record) []string {
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

// Export copies the unsent changes of a mount that was ended by force to a
// directory where a person finds them. They stay in the working copy, too. The
// error says that there were some.
func Export(ctx context.Context, r *state.Record, dirs []string) error {
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
			return exit.New(exit.Unsafe, "%s is unmounted, and not pushed: %s", r.Mountpoint, statustext.Commits(l.Unpushed, time.Now())).
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
			more = "; not pushed: " + statustext.Commits(l.Unpushed, time.Now())
		}
		return exit.New(exit.Unsafe, "%s is unmounted, and %s not sent: %s copied to %s%s", r.Mountpoint,
			statustext.Plural(l.Total, "1 change is", fmt.Sprintf("%d changes are", l.Total)), statustext.Count(len(got.Files), "file"), into, more).
			Hint("mount the workspace again to send them, or `wsmount recover upload %s`", dir)
	}
	return nil
}

// StaysText names the changes that stay in the working copies of an ended mount;
// "" if there are none.
func StaysText(res control.UnmountResult) string {
	changes := fmt.Sprintf("%s in the working copy, unsent%s",
		statustext.Plural(res.Unsent, "1 change stays", fmt.Sprintf("%d changes stay", res.Unsent)), statustext.Note(res.Conflicts > 0, statustext.Count(res.Conflicts, "conflict")))
	commits := fmt.Sprintf("%s in the working copy, not pushed", statustext.Plural(res.Unpushed, "1 commit stays", fmt.Sprintf("%d commits stay", res.Unpushed)))
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
