package cache

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Lookup implements fs.Volume. The first one in a directory lists it.
func (v *Volume) Lookup(op *fs.Op, dir fs.Ino, name string) (fs.Entry, error) {
	if err := checkName(name); err != nil {
		return fs.Entry{}, err
	}
	d := table.Ino(dir)
	if err := v.loadDir(op, d); err != nil {
		return fs.Entry{}, err
	}
	var e fs.Entry
	err := v.view(func() error {
		delete(v.displaced, table.Link{Dir: d, Name: name})
		if rec, _ := v.table.Name(d, name); rec.Ino != 0 {
			e = v.refer(d, rec.Ino)
		} else {
			e.TTL = v.kernelTTL(d)
		}
		return nil
	})
	return v.unrefer(e, err)
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

// mayName refuses a new name that the backend could not have, unless it stays
// here. mu is held.
func (v *Volume) mayName(l table.Link, n *table.Inode) error {
	at, ok := v.path(l)
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

// errUnknown says that the names of a directory are not known any more.
type errUnknown struct{ dir table.Ino }

func (errUnknown) Error() string { return "a directory is not known" }

// change is update for a change of names: do finds its directories with
// parent, and is run again once one that is not known has been listed.
func (v *Volume) change(op *fs.Op, do func() error) error {
	for {
		err := v.update(v.asked(op, do))
		e, ok := err.(errUnknown) // never wrapped
		if !ok {
			return err
		}
		if err := v.loadDir(op, e.dir); err != nil {
			return err
		}
	}
}

// parent is the directory dir, known, for a change of a name in it. mu is held.
func (v *Volume) parent(dir table.Ino) (*table.Inode, error) {
	n := v.table.Inode(dir)
	switch {
	case n == nil:
		return nil, fs.ErrStale
	case !isDir(n):
		return nil, syscall.ENOTDIR
	case len(n.Links) == 0 && dir != table.Root:
		return nil, syscall.ENOENT // it was removed while somebody is in it
	case !n.Loaded:
		return nil, errUnknown{dir}
	}
	return n, nil
}

// inode is an inode that the kernel knows. mu is held.
func (v *Volume) inode(ino fs.Ino) (*table.Inode, error) {
	if n := v.table.Inode(table.Ino(ino)); n != nil {
		return n, nil
	}
	return nil, fs.ErrStale
}

// find walks to a path here. An ino of 0 says that the name is free; the
// directory of the link is 0 when not even that is there.
func (v *Volume) find(ctx context.Context, path string) (l table.Link, ino table.Ino, err error) {
	ino = table.Root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			return l, ino, nil
		}
		if ino == 0 {
			return table.Link{}, 0, nil
		}
		if err := ctx.Err(); err != nil {
			return l, 0, err
		}
		if err := v.loadDir(nil, ino); err != nil {
			return l, 0, err
		}
		v.mu.Lock()
		l = table.Link{Dir: ino, Name: name}
		rec, _ := v.table.Name(l.Dir, l.Name)
		ino = rec.Ino
		v.mu.Unlock()
	}
	return l, ino, nil
}

func itoa(ino table.Ino) string { return strconv.FormatUint(ino, 10) }
