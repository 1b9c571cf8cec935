package vault

import (
	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
)

// retry repeats a system call that a signal interrupted.
func retry[R any](call func() (R, error)) (R, error) {
	for {
		r, err := call()
		if err != unix.EINTR {
			return r, err
		}
	}
}

func retryErr(call func() error) error {
	_, err := retry(func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// beneath opens a name relative to the root, going through no link, never above the root and into
// no mount below it, which was not granted with it.
func (p *Provider) beneath(path string, flags int) (int, error) {
	return localdir.OpenBeneath(p.root, path, flags|unix.O_NOFOLLOW, unix.RESOLVE_NO_SYMLINKS)
}

// openDir opens the directory l; the caller closes it.
func (p *Provider) openDir(l providers.Locator, flags int) (int, error) {
	path := l.String()
	if l.IsRoot() {
		path = "."
	}
	return p.beneath(path, flags|unix.O_DIRECTORY)
}

// within runs f with the directory that holds l, and l's name in it. The descriptor is
// good for f* at calls only.
func (p *Provider) within(l providers.Locator, f func(dir int, name string) error) error {
	if l.IsRoot() {
		return f(p.root, ".")
	}
	dir, err := p.openDir(l.Parent(), unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return f(dir, l.Name())
}

// syncDir makes the names in the directory l durable.
func (p *Provider) syncDir(l providers.Locator) error {
	dir, err := p.openDir(l, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return retryErr(func() error { return p.fsync(dir) })
}

// mkdirs makes the directory l and its missing parents, all durable.
func (p *Provider) mkdirs(l providers.Locator) error {
	if l.IsRoot() {
		return nil
	}
	fd, err := p.openDir(l, unix.O_PATH)
	if err == nil {
		return unix.Close(fd)
	}
	if err != unix.ENOENT {
		return err
	}
	if err := p.mkdirs(l.Parent()); err != nil {
		return err
	}
	err = p.within(l, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o777) })
	if err == unix.EEXIST { // another writer was faster, or it is a file
		fd, err := p.openDir(l, unix.O_PATH)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
	if err != nil {
		return err
	}
	return localdir.Happened(p.syncDir(l.Parent()))
}
