package daemon

import (
	"errors"
	"io/fs"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// othersUnsaved refuses a mount while another working copy of the same
// workspace, one of another storage or another name, holds what no store has:
// it would be out of sight. One that is mounted looks after itself.
func othersUnsaved(root string, place [3]string) error {
	own, err := state.Place(root, place[0], place[1], place[2])
	if err != nil {
		return err
	}
	dirs, err := state.Copies(root, place[0], place[1])
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if dir == own {
			continue
		}
		l, err := room.Inspect(dir, 1)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && (l.InUse || l.Empty()):
		case state.IsFull(err):
			return err
		case err != nil:
			return exit.New(exit.Unsafe, "another working copy of @%s/%s cannot be read: %s: %w", place[0], place[1], dir, err).
				Hint("`wsmount recover --scan %s` rebuilds it", dir)
		case l.Total == 0 && len(l.Recovered) == 0:
			return exit.New(exit.Unsafe, "another working copy of @%s/%s holds commits that are not pushed: %s", place[0], place[1], dir).
				Hint("`wsmount recover upload %s` pushes them", dir)
		default:
			return exit.New(exit.Unsafe, "another working copy of @%s/%s holds unsaved changes (%d): %s", place[0], place[1], max(l.Total, len(l.Recovered)), dir).
				Hint("`wsmount recover export %s DIR` copies them, `wsmount recover` shows them", dir)
		}
	}
	return nil
}
