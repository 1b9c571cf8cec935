package offline

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Exported is the result of an Export.
type Exported struct {
	Files   []string          `json:"files,omitempty"` // below into
	Skipped []history.Skipped `json:"skipped,omitempty"`
}

// Also reports whether an unchanged file is exported too, by the version that the remote is to
// have; nil: none is.
type Also func(path string, of providers.Version) bool

// Export writes the unsaved files of a working copy into a directory, under their paths, as
// they are, those whose names a loss of power took, and local content that also chooses. It
// makes the directory, and never overwrites a file in it: a name that is taken is skipped. The
// working copy stays as it is.
func Export(ctx context.Context, stateDir, into string, also Also) (Exported, error) {
	var out Exported
	w, err := open(stateDir, true, table.Options{ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer w.Close()
	var unsaved []Unsaved
	err = w.tree.View(func(v *tree.View) error {
		eachUnsaved(v, func(u Unsaved) { unsaved = append(unsaved, u) })
		if also == nil {
			return nil
		}
		saved, err := w.saved(v, also)
		unsaved = append(unsaved, saved...)
		return err
	})
	if err != nil {
		return out, err
	}
	for _, u := range unsaved {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		switch name, err := w.export(into, u); {
		case err != nil:
			out.Skipped = append(out.Skipped, history.Skipped{Path: u.Path, Reason: err.Error()})
		case name != "":
			out.Files = append(out.Files, name)
		}
	}
	rescued, err := recovery.Rescued(stateDir)
	for _, name := range rescued {
		if err := copyOut(into, name, filepath.Join(stateDir, filepath.FromSlash(name))); err != nil {
			out.Skipped = append(out.Skipped, history.Skipped{Path: name, Reason: err.Error()})
			continue
		}
		out.Files = append(out.Files, name)
	}
	return out, err
}

// saved are the unchanged files with local content that also chooses.
func (w *workingCopy) saved(v *tree.View, also Also) (all []Unsaved, err error) {
	local := map[table.Ino]bool{}
	err = w.Content.Each(func(ino uint64, _ string, _ int64, partial bool) { local[table.Ino(ino)] = !partial })
	var below func(dir table.Ino)
	below = func(dir table.Ino) {
		v.Names(dir, "", func(name string, rec table.Name) bool {
			n := v.Inode(rec.Ino)
			switch {
			case n == nil:
			case n.IsDir():
				below(rec.Ino)
			case n.IsRegular() && rec.Seq == 0 && local[rec.Ino]:
				u, version := UnsavedAt(v, table.Link{Dir: dir, Name: name}), providers.Version{}
				if rec.Remote != nil {
					version = rec.Remote.Version
				}
				if also(u.Path, version) {
					all = append(all, u)
				}
			}
			return true
		})
	}
	below(table.Root)
	return all, err
}

func copyOut(into, name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return recovery.WriteOut(into, name, f)
}

// export writes one entry, and gives the name of its file; "" when no file is written.
func (w *workingCopy) export(into string, u Unsaved) (string, error) {
	name := recovery.SafePath(u.Path)
	path := filepath.Join(into, filepath.FromSlash(name))
	switch {
	case u.Change == "deleted":
		return "", nil
	case u.Kind == "dir":
		return "", os.MkdirAll(path, 0o700)
	case u.Kind == "symlink":
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return name, err
		}
		return name, os.Symlink(u.target, path)
	case u.Kind != "file":
		return "", errors.New("neither a file nor a link")
	}
	f, err := w.Content.Open(u.ino)
	if errors.Is(err, iofs.ErrNotExist) {
		if u.Size == 0 {
			return name, recovery.WriteOut(into, name, strings.NewReader(""))
		}
		return "", errors.New("the content was not fetched; the remote has it under the old name")
	}
	if err != nil {
		return "", err
	}
	defer f.Release()
	if !f.Whole() {
		name += ".partial"
	}
	return name, recovery.WriteOut(into, name, recovery.Raw(f))
}
