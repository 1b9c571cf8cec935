package cache

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// errUnknown says that the names of a directory are not known any more.
type errUnknown struct{ dir table.Ino }

func (errUnknown) Error() string { return "a directory is not known" }

// change is update for a change of names: do finds its directories with
// parent, and is run again once one that is not known has been listed.
func (v *Volume) change(op *fs.Op, do func(*Tx) error) error {
	for {
		err := v.update(onBehalf(op, do))
		e, ok := err.(errUnknown) // never wrapped
		if !ok {
			return err
		}
		if err := v.loadDir(op, e.dir); err != nil {
			return err
		}
	}
}

// parent is the directory dir, known, for a change of a name in it.
func (v *View) parent(dir table.Ino) (*table.Inode, error) {
	n := v.table.Inode(dir)
	switch {
	case n == nil:
		return nil, fs.ErrStale
	case !n.IsDir():
		return nil, syscall.ENOTDIR
	case len(n.Links) == 0 && dir != table.Root:
		return nil, syscall.ENOENT // it was removed while somebody is in it
	case !n.Loaded:
		return nil, errUnknown{dir}
	}
	return n, nil
}

// inode is an inode that the kernel knows.
func (v *View) inode(ino fs.Ino) (*table.Inode, error) {
	if n := v.table.Inode(table.Ino(ino)); n != nil {
		return n, nil
	}
	return nil, fs.ErrStale
}

// checkName refuses what is not one name. The kernel does not send such names,
// but here they would lead elsewhere.
func checkName(name string) error {
	switch {
	case len(name) > providers.MaxName:
		return syscall.ENAMETOOLONG
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return syscall.EINVAL
	}
	return nil
}

// mayName refuses a new name that the backend could not have, unless it stays here.
func (v *Tx) mayName(l table.Link, n *table.Inode) error {
	at, ok := v.LocalPath(l)
	if !ok || v.caps.AnyNames || v.stays(l, n) {
		return nil
	}
	err := v.caps.Names.Check(at)
	if errors.Is(err, providers.ErrTooLarge) {
		return fmt.Errorf("%w: %w", syscall.ENAMETOOLONG, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", fs.ErrName, err)
	}
	return nil
}
