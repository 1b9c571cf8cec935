package cache

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// errnos gives the kinds that package fs does not know a meaning.
var errnos = []struct{ kind, as error }{
	{files.ErrOutdated, fs.ErrStale},
	{files.ErrNoInode, fs.ErrStale},
	{files.ErrNotServed, fs.ErrUnavailable},
	{providers.ErrReadOnly, fs.ErrReadOnly},
	{providers.ErrConflict, fs.ErrConflict},
	{providers.ErrUnavailable, fs.ErrUnavailable},
	{providers.ErrUnauthenticated, errRefused},
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

// translate adds the kind of package fs to an error of the seam.
func translate(err error) error {
	for _, row := range errnos {
		if errors.Is(err, row.kind) {
			return fmt.Errorf("%w: %w", row.as, err)
		}
	}
	return err
}
