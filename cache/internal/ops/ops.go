package ops

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// errUnknown is the error that the names of a directory are not known.
type errUnknown struct{ dir table.Ino }

func (errUnknown) Error() string { return "a directory is not known" }

// Change runs update, which changes names. As long as it fails for want of a directory's names,
// load lists that directory and update runs again.
func Change(load func(dir table.Ino) error, update func() error) error {
	for {
		err := update()
		e, ok := err.(errUnknown) // never wrapped
		if !ok {
			return err
		}
		if err := load(e.dir); err != nil {
			return err
		}
	}
}

// change is update for a change of names: do finds its directories with parent.
func (v *Operations) change(op *fs.Op, do func(*tx) error) error {
	load := func(dir table.Ino) error { return v.o.Remote.Load(op, dir) }
	return Change(load, func() error { return v.update(op, do) })
}

// parent is the directory dir, with all names known, for a change of a name in it.
func (v view) parent(dir table.Ino) (*table.Inode, error) {
	n := v.Inode(dir)
	switch {
	case n == nil:
		return nil, fs.ErrStale
	case !n.IsDir():
		return nil, syscall.ENOTDIR
	case len(n.Links) == 0 && dir != table.Root:
		return nil, syscall.ENOENT // removed, while a program still uses it
	case !n.Loaded:
		return nil, errUnknown{dir}
	}
	return n, nil
}

// inode is an inode that the kernel knows.
func (v view) inode(ino fs.Ino) (*table.Inode, error) {
	if n := v.Inode(table.Ino(ino)); n != nil {
		return n, nil
	}
	return nil, fs.ErrStale
}

// mayName refuses a new name that the remote could not have, unless it stays local.
func (v *tx) mayName(l table.Link, n *table.Inode) error {
	at, ok := v.LocalPath(l)
	if !ok || v.o.Capabilities.AnyNames || v.Border.Stays(v.Tx.Tx, l, n) {
		return nil
	}
	err := v.o.Capabilities.Names.Check(at)
	if errors.Is(err, providers.ErrTooLarge) {
		return fmt.Errorf("%w: %w", syscall.ENAMETOOLONG, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", fs.ErrName, err)
	}
	return nil
}
