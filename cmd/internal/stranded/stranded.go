// Package stranded refuses requests that would put a working copy out of sight that holds data
// that no store has: a mount with another working copy of the same workspace, and another storage.
//
//	err := stranded.Elsewhere(root, place)
//
// It promises that a refusal names the working copy, and the commands that save its files.
package stranded

import (
	"errors"
	"io/fs"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/clone"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec"
)

// Elsewhere refuses a mount while another working copy of the workspace than that at
// place (owner, slug, fingerprint), one of another storage or another name, holds data
// that no store has. One that is mounted looks after itself.
func Elsewhere(root string, place [3]string) error {
	own, err := state.Place(root, place[0], place[1], place[2])
	if err != nil {
		return err
	}
	dirs, err := state.Copies(root, place[0], place[1])
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if dir == own || state.MountOf(dir) != nil {
			continue
		}
		if err := unsavedIn(dir, "another working copy", own); err != nil {
			return err
		}
	}
	return nil
}

// LostCommits refuses to open the working copy at place (owner, slug, fingerprint) while it has noted
// commits that are not pushed and its clone has lost them, or cannot be read: opened, it would have
// the files as they were before them, and no note of them would be left. A working copy that is
// gone or was rebuilt does not say that there were none.
func LostCommits(root string, place [3]string) error {
	dir, err := state.Place(root, place[0], place[1], place[2])
	if err != nil || !clone.IsKept(dir) { // else each mount would read the table twice
		return err
	}
	l, err := leftover.Inspect(dir, 1)
	if err != nil || l.Unread == "" { // its mount reports other errors
		return nil
	}
	var refused *exit.Error
	switch ws := state.WorkspaceOf(dir); {
	case *l.Unpushed != (cache.Unpushed{}):
		refused = exit.New(exit.Unsafe, "commits of %s that are not pushed (%d) are lost to its clone: %s", ws, l.Unpushed.Commits, l.Unread)
	case l.StandsOn == "":
		refused = exit.New(exit.Unsafe, "commits of %s may not be pushed, and its working copy is gone or was rebuilt: %s", ws, l.Unread)
	default:
		return nil
	}
	return refused.Hint("put back what lay in %s; or `wsmount recover export %s DIR` copies the files that are local, and `wsmount recover discard %s` gives the commits up", clone.PathOf(dir), dir, dir)
}

// MayMove refuses another storage of a workspace, that with the fingerprint to, while the
// workspace is mounted with an old one, or a working copy of an old one holds data that no
// store has, which would not go to the new place. from is the one that it is mounted from until
// then; "": none, as its governing files have changed already.
func MayMove(root string, a mountspec.Address, from, to string) error {
	old := func(dir string) bool { return leftover.Fingerprint(dir) != to }
	const hint = "--force changes it all the same, and leaves there what is not sent"
	records, err := state.List(root)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Workspace == a.String() && old(r.Dir) && r.Alive() {
			return exit.New(exit.Unsafe, "%s is mounted at %s, with the storage that it had", a, r.Mountpoint).
				Hint("`wsmount umount %s` first; %s", r.Mountpoint, hint)
		}
	}
	dirs, err := state.Copies(root, a.Owner, a.Slug)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !old(dir) {
			continue
		}
		if state.Held(dir) {
			return exit.New(exit.Unsafe, "%s is in use, with the storage that it had: %s", a, dir).
				Hint("`wsmount status` shows the mounts that it may be a part of: unmount that first; %s", hint)
		}
		if err := unsavedIn(dir, "a working copy", from); err != nil {
			e := exit.From(err)
			return e.Hint("%s; %s", e.Advice, hint)
		}
	}
	return nil
}

// unsavedIn is an error if a working copy that is not mounted holds data that no store has, or may.
// which says how it relates to the request, now is the last argument of leftover.Ways.
func unsavedIn(dir, which, now string) error {
	which += " of " + state.WorkspaceOf(dir)
	if place, _ := state.StorageOf(dir); place != "" {
		which += " (" + place + ")"
	}
	l, err := leftover.Inspect(dir, 1)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && l.Empty():
		return nil
	case err == nil && l.InUse:
		return exit.New(exit.Unsafe, "%s is in use, and may hold what no store has: %s", which, dir).
			Hint("try again when the command, or the mount that is starting, has ended; `wsmount status` shows the mounts")
	case state.IsFull(err):
		return err
	case err != nil:
		return exit.New(exit.Unsafe, "%s cannot be read: %s: %w", which, dir, err).Hint("%s", leftover.Advice(dir, err))
	}
	return exit.New(exit.Unsafe, "%s holds %s: %s", which, l.Text(), dir).Hint("%s", leftover.Ways(dir, now))
}
