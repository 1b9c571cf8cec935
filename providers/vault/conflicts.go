package vault

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

var _ providers.Replicated = (*Provider)(nil)

// ConflictCopies implements providers.Replicated. It reads names alone, no content.
func (p *Provider) ConflictCopies(ctx context.Context) ([]providers.Locator, error) {
	return do(ctx, p, providers.MethodList, providers.Locator{}, func() ([]providers.Locator, error) {
		var found []providers.Locator
		err := p.walk(ctx, providers.Locator{}, func(l providers.Locator) {
			if providers.IsConflictCopy(l.Name()) {
				found = append(found, l)
			}
		})
		slices.SortFunc(found, providers.Locator.Compare)
		return found, err
	})
}

// walk calls f for everything but directories, at l or below it. It skips directories that are
// gone by now, that this user may not read, or in which another file system is mounted.
func (p *Provider) walk(ctx context.Context, l providers.Locator, f func(l providers.Locator)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fd, err := p.openDir(l, unix.O_RDONLY)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.EPERM, unix.EXDEV:
		return nil
	default:
		return err
	}
	dir := file(fd, l)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		child, err := l.Child(name)
		if err != nil {
			return err
		}
		var st unix.Statx_t
		if err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st); err != nil {
			continue // gone by now
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			f(child)
			continue
		}
		if err := p.walk(ctx, child, f); err != nil {
			return err
		}
	}
	return nil
}
