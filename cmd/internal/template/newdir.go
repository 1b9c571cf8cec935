package template

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/bundle"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
)

// A newDirectory is filled under another name beside its own, which it gets as a whole. That
// other name tells its purpose, so that a later call clears away the files of one
// that was killed.
type newDirectory struct {
	path, filled string
	existed      bool     // as an empty directory
	made         []string // directories above it
	lock         *os.File // the directory itself, locked
	root         *os.Root // the same, to fill it
}

// newDir begins a directory that does not exist, or is empty.
func newDir(path string) (n *newDirectory, err error) {
	n = &newDirectory{path: path, filled: filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".wsmount-init")}
	mode, err := n.look()
	if err != nil {
		return nil, err
	}
	n.made = manifestfile.Missing(filepath.Dir(path))
	defer func() {
		if err != nil {
			n.discard()
			n.close()
			err = exit.New(exit.Failed, "%w", err).Hint("choose a directory beside which you may write")
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return n, err
	}
	if err := os.Mkdir(n.filled, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return n, err
	}
	if err := n.take(); err != nil {
		return n, err
	}
	if n.existed {
		return n, n.lock.Chmod(mode)
	}
	return n, nil
}

// look says whether the directory may be begun, and with which mode.
func (n *newDirectory) look() (fs.FileMode, error) {
	st, err := os.Lstat(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0o755, nil
	}
	if err != nil {
		return 0, exit.New(exit.Failed, "%w", err).Hint("choose another directory")
	}
	n.existed = true
	if here, err := os.Stat("."); err == nil && os.SameFile(here, st) {
		return 0, exit.New(exit.Usage, "%s is the working directory, which cannot be replaced", n.path).Hint("run it from the directory above")
	}
	names, err := os.ReadDir(n.path)
	if err != nil || len(names) > 0 {
		return 0, exit.New(exit.Failed, "%s is not an empty directory", n.path).Hint("a template goes into a new directory; nothing is overwritten")
	}
	return st.Mode().Perm(), nil
}

// take locks the directory that is filled, and clears it.
func (n *newDirectory) take() (err error) {
	if n.lock, err = os.Open(n.filled); err != nil {
		return err
	}
	if err := unix.Flock(int(n.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errBusy
	}
	locked, err := n.lock.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Lstat(n.filled); err != nil || !os.SameFile(named, locked) {
		return errBusy
	}
	if n.root, err = os.OpenRoot(n.filled); err != nil {
		return err
	}
	names, err := n.lock.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, n.root.RemoveAll(name))
	}
	return err
}

var errBusy = errors.New("another `wsmount init` makes the same directory")

// appear puts all on the disk, and gives the directory its name.
func (n *newDirectory) appear() error {
	if err := unix.Syncfs(int(n.lock.Fd())); err != nil {
		return &fs.PathError{Op: "syncfs", Path: n.filled, Err: err}
	}
	if err := unix.Rename(n.filled, n.path); err != nil { // over an empty directory at most
		return exit.New(exit.Failed, "%s cannot be made: %w", n.path, err).Hint("is there something in %s now, or mounted on it?", n.path)
	}
	return syncDir(filepath.Dir(n.path))
}

// discard removes the directory under the other name, and those made above it.
func (n *newDirectory) discard() {
	if n.root != nil {
		os.RemoveAll(n.filled)
	}
	n.removeAbove()
}

func (n *newDirectory) removeAbove() {
	for _, dir := range n.made {
		os.Remove(dir) // unless it is not empty any more
	}
}

func (n *newDirectory) close() {
	if n.root != nil {
		n.root.Close()
	}
	if n.lock != nil {
		n.lock.Close()
	}
}

// undo takes away the files of a list, the directories that are empty then, and, unless it
// existed before, the directory.
func (n *newDirectory) undo(l *bundle.List) {
	root, err := os.OpenRoot(n.path)
	if err != nil {
		return
	}
	for _, e := range slices.Backward(l.Entries) {
		_ = root.Remove(e.Path) // a directory stays if something was added to it
	}
	root.Close()
	if !n.existed {
		os.Remove(n.path)
		n.removeAbove()
	}
}
