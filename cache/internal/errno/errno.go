// Package errno gives errors of the packages of a working copy and of providers the meaning
// that they have for a program.
package errno

import (
	"errors"
	"fmt"
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
	{providers.ErrUnauthenticated, ErrRefused},
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

// Translate adds the kind of package fs to an error of the seam.
func Translate(err error) error {
	for _, row := range kinds {
		if errors.Is(err, row.kind) {
			return fmt.Errorf("%w: %w", row.as, err)
		}
	}
	return err
}

// ErrRefused is what a program gets for credentials that do not hold: for it the remote is
// away, but a person is told what is wrong.
var ErrRefused error = refusedAccess{}

type refusedAccess struct{}

func (refusedAccess) Error() string {
	return "the backend refused access, for the reason that follows (`wsmount resolve --explain` names the secret in use)"
}

func (refusedAccess) Unwrap() error { return fs.ErrUnavailable }
