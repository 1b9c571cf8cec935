// Package errno gives errors of the packages of a working copy and of providers the meaning
// that they have for a program.
package errno

import (
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// kinds gives the kinds that package fs does not know a meaning.
var kinds = []struct{ kind, as error }{
	{files.ErrOutdated, fs.ErrStale},
	{files.ErrNoInode, fs.ErrStale},
	{files.ErrNotServed, fs.ErrUnavailable},
	{providers.ErrReadOnly, fs.ErrReadOnly},
	{providers.ErrConflict, fs.ErrConflict},
	{providers.ErrUnavailable, fs.ErrUnavailable},
	{providers.ErrUnauthenticated, fs.ErrUnavailable},
	{providers.ErrQuota, fs.ErrQuota},
	{providers.ErrUnsupported, fs.ErrUnsupported},
	{providers.ErrTooLarge, syscall.EFBIG},
	{providers.ErrNotDir, syscall.ENOTDIR},
	{providers.ErrIsDir, syscall.EISDIR},
	{providers.ErrNotEmpty, syscall.ENOTEMPTY},
	{providers.ErrNameTooLong, syscall.ENAMETOOLONG},
	{providers.ErrClosed, syscall.EIO},
	{providers.ErrCorrupt, syscall.EIO},
}

// Translate gives an error of the seam its kind of package fs, adding no text.
func Translate(err error) error {
	for _, row := range kinds {
		if errors.Is(err, row.kind) {
			return providers.Kinded(err, row.as)
		}
	}
	return err
}
