package daemon

import (
	"errors"
	"io/fs"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// OthersUnsaved refuses a mount while another working copy of the same
// workspace, one of another storage or another name, holds what no store has:
// it would be out of sight. One that is mounted looks after itself.
func (t *Tree) OthersUnsaved(s Source) error {
	if s.Open == nil {
		return nil
	}
	own, err := state.Place(t.StateRoot, s.Place[0], s.Place[1], s.Place[2])
	if err != nil {
		return err
	}
	dirs, err := state.Copies(t.StateRoot, s.Place[0], s.Place[1])
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if dir == own {
			continue
		}
		if err := unsavedIn(dir, "another working copy"); err != nil {
			return err
		}
	}
	return nil
}

// unsavedIn is an error if a working copy that is not mounted holds what no store has.
// which says in what relation it stands.
func unsavedIn(dir, which string) error {
	which += " of " + state.WorkspaceOf(dir)
	if place := state.StorageOf(dir); place != "" {
		which += " (" + place + ")"
	}
	l, err := room.Inspect(dir, 1)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (l.InUse || l.Empty()):
		return nil
	case state.IsFull(err):
		return err
	case err != nil:
		return exit.New(exit.Unsafe, "%s cannot be read: %s: %w", which, dir, err).
			Hint("`wsmount recover --scan %s` rebuilds it", dir)
	case l.Total == 0 && len(l.Recovered) == 0:
		return exit.New(exit.Unsafe, "%s holds commits that are not pushed: %s", which, dir).
			Hint("`wsmount recover upload %s` pushes them", dir)
	}
	return exit.New(exit.Unsafe, "%s holds unsaved changes (%d): %s", which, max(l.Total, len(l.Recovered)), dir).
		Hint("`wsmount recover export %s DIR` copies them, `wsmount recover` shows them", dir)
}
