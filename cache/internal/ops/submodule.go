package ops

import (
	"fmt"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// A directory that is another repository, as a submodule of git is, stays unchanged: the remote
// would accept no file in it, and after a local move or removal the two sides would differ for
// ever. So each change of a name asks first, and fails with EROFS, whose reason is in
// errors.log.
//
// The remote knows such directories by their paths in its tree. The local paths are the same,
// since no directory above one is ever moved locally.

// changesIn checks that names may be made or changed in a directory.
func (v *Operations) changesIn(op *fs.Op, dir fs.Ino) error {
	if v.o.Remote.Submodule == nil {
		return nil
	}
	locked := v.lock()
	l, ok := locked.LocalPathOf(table.Ino(dir))
	locked.unlock()
	if !ok {
		return nil
	}
	at, ok, err := v.o.Remote.Submodule(op, l)
	if err != nil || !ok || at != l {
		return err
	}
	return submoduleError(at)
}

// takesAway checks that a name may be moved or removed with everything below it.
func (v *Operations) takesAway(op *fs.Op, l table.Link) error {
	if v.o.Remote.Submodule == nil {
		return nil
	}
	locked := v.lock()
	rec := locked.Record(l)
	n := locked.Inode(rec.Ino)
	at, ok := locked.LocalPath(l)
	locked.unlock()
	if !ok || n == nil || !n.IsDir() {
		return nil
	}
	at, found, err := v.o.Remote.Submodule(op, at)
	if err != nil || !found {
		return err
	}
	return submoduleError(at)
}

func submoduleError(at providers.Locator) error {
	return fmt.Errorf("%s is a submodule, another repository that this mount does not change; use git in a clone to do so: %w", at, syscall.EROFS)
}
