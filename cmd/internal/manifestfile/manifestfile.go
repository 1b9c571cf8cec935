// Package manifestfile writes the first WORKSPACE.md of a directory. It promises that the
// manifest validates, and that nothing is overwritten.
//
//	undo, err := manifestfile.WriteNew("/srv/notes/WORKSPACE.md", workspace)
package manifestfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/mountspec"
)

// WriteNew declares a workspace in a file that does not exist yet, and makes its
// directory. undo takes away what it made.
func WriteNew(name string, w *mountspec.Workspace) (undo func(), err error) {
	text, err := text(w)
	if err != nil {
		return nil, err
	}
	made := missing(filepath.Dir(name))
	remove := func() {
		for _, name := range made {
			os.Remove(name) // a directory, unless somebody has put something in it
		}
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, exit.New(exit.Failed, "%w", err).Hint("choose a directory that you may write")
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, exit.New(exit.Failed, "%s exists already", name).Hint("edit it, or remove it first; a manifest is never overwritten")
	}
	if err != nil {
		return nil, exit.New(exit.Failed, "%w", err).Hint("choose a directory that you may write")
	}
	made = append([]string{name}, made...)
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, exit.New(exit.Failed, "%w", err)
	}
	return remove, nil
}

// missing lists a directory and those above it that do not exist, the deepest first.
func missing(dir string) (out []string) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return out
		}
		out = append(out, dir)
	}
}

// text prints a workspace and makes sure that it reads back.
func text(w *mountspec.Workspace) ([]byte, error) {
	text, err := w.Marshal()
	if err != nil {
		return nil, exit.New(exit.Failed, "%w", err)
	}
	text = append(text, "\n# "+w.Name+"\n\nMount it with `wsmount "+w.ID.String()+" MOUNTPOINT`.\n"...)
	if _, found := mountspec.ParseWorkspace(mountspec.Source{Name: "WORKSPACE.md", Data: text}, mountspec.Options{Registered: daemon.Mountable}); found.Err() != nil {
		return nil, exit.New(exit.Failed, "the new manifest does not validate: %w", found.Err())
	}
	return text, nil
}
