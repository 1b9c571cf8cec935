package devicelocal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/seam"
	"golang.org/x/sys/unix"
)

// Write implements seam.Backend. The mode of an existing file stays.
func (b *Backend) Write(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
	return b.change(ctx, l, content, nil)
}

// WriteIf implements seam.Conditional.
func (b *Backend) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	return b.change(ctx, l, content, &old)
}

// change is Write where old is nil, and else WriteIf.
func (b *Backend) change(ctx context.Context, l seam.Locator, content string, old *seam.ETag) (seam.Locator, error) {
	err := seam.CheckText(l, content)
	if err != nil {
		return seam.Locator{}, err
	}
	if err = ctx.Err(); err == nil {
		err = b.put(ctx, l, content, old)
	}
	if err != nil {
		return seam.Locator{}, b.fail(providers.MethodWrite, l, err)
	}
	return l, nil
}

// put replaces the file at l, with the lock of its directory.
func (b *Backend) put(ctx context.Context, l seam.Locator, content string, old *seam.ETag) error {
	if err := checkName(l); err != nil {
		return err
	}
	for w := localdir.NewWait(timeout); ; {
		dir, err := b.parent(l, old)
		if err != nil {
			return err
		}
		if err = b.putIn(ctx, dir, l, content, old); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// The directory was removed while its lock was waited for: a new one has its name by now,
		// or it is made anew.
		if err := w.Once(ctx, err); err != nil {
			return err
		}
	}
}

// putIn is put in an open directory, which it closes.
func (b *Backend) putIn(ctx context.Context, dir *os.Root, l seam.Locator, content string, old *seam.ETag) (err error) {
	defer dir.Close()
	unlock, err := b.lock(ctx, dir, l.Name(), old)
	if errors.Is(err, providers.ErrUnsupported) && old == nil { // no condition, no lock needed
		return b.write(dir, l, content, nil)
	}
	if err != nil {
		return err
	}
	defer unlock()
	return b.write(dir, l, content, old)
}

func checkName(l seam.Locator) error {
	switch {
	case l == seam.Locator{}:
		return providers.ErrIsDir
	case seam.IsTemporary(l.Name()):
		return seam.ErrTemporary
	}
	return nil
}

// parent opens the directory of l. A missing one is made, unless old says that l has content.
func (b *Backend) parent(l seam.Locator, old *seam.ETag) (*os.Root, error) {
	parts := parentOf(l)
	dir, err := b.enter(nameOf(parts))
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if old != nil && *old != seam.None {
		return nil, seam.Changed(seam.None)
	}
	if err := b.mkdirAll(parts); err != nil {
		return nil, err
	}
	return b.enter(nameOf(parts))
}

// write replaces the file at l in its directory, whose lock is held where there is one. old is
// that of WriteIf, or nil.
func (b *Backend) write(dir *os.Root, l seam.Locator, content string, old *seam.ETag) error {
	is, err := dir.Lstat(l.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return b.replace(dir, l.Name(), content, nil, old)
	}
	if err == nil {
		err = checkKind(is.Mode())
	}
	if err != nil {
		return err
	}
	mode := is.Mode().Perm()
	return b.replace(dir, l.Name(), content, &mode, old)
}

// place gives a temporary file its name in a directory, of which at is a descriptor, unless a
// program that takes no lock has changed the entry of that name since it was compared.
func (b *Backend) place(dir *os.Root, at int, temp, name string, open bool, old *seam.ETag) error {
	if old == nil {
		return dir.Rename(temp, name)
	}
	in := b.in(dir)
	if *old == seam.None {
		err := localdir.Rename(at, temp, at, name, unix.RENAME_NOREPLACE)
		if errors.Is(err, fs.ErrExist) {
			if err = in.compare(name, seam.None); err == nil { // the entry is gone again
				err = providers.ErrConflict
			}
		}
		return err
	}
	if err := in.compare(name, *old); err != nil { // first, so that another entry keeps its name
		return err
	}
	b.compared()
	return localdir.Replace(at, temp, at, name, open, func(_ int, name string) error { return in.compare(name, *old) })
}

// replace puts a whole file at a place, whose directory is open, with the mode of the old one, if
// there is one, or that of a new file. It gets its name when it is on the disk; where a mount
// sends it with its name, before that.
func (b *Backend) replace(dir *os.Root, name, content string, mode *fs.FileMode, old *seam.ETag) (err error) {
	sends, err := b.sends(dir)
	if err != nil {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := begin(d, mode)
	if err != nil {
		return err
	}
	temp, named := f.Name(), false
	defer func() {
		var left *localdir.LeftError
		if err != nil && !named && !errors.As(err, &left) {
			dir.Remove(temp)
		}
	}()
	if mode != nil {
		err = f.Chmod(*mode)
	}
	if err == nil {
		_, err = f.WriteString(content)
	}
	if err == nil && sends {
		if _, err = localdir.Named(f, int(d.Fd())); err == nil {
			err = b.place(dir, int(d.Fd()), temp, name, true, old)
		}
		named = err == nil
	}
	if err == nil {
		err = b.fsync(f)
	}
	if err == nil && !named {
		_, err = localdir.Named(f, int(d.Fd()))
	}
	err = errors.Join(err, f.Close())
	switch {
	case named:
		err = localdir.Happened(err)
	case err == nil:
		err = b.place(dir, int(d.Fd()), temp, name, false, old)
	}
	if err != nil {
		return err
	}
	return b.syncDir(dir)
}

// sends reports whether a file that is closed in an open directory is sent.
func (b *Backend) sends(dir *os.Root) (bool, error) {
	if b.mount == nil {
		return false, nil
	}
	at, err := realName(dir)
	return err == nil && b.mount.Sends(at), err
}

// begin makes a temporary file, without its name where that can be. The file never has more
// permissions than the old one, not even for a moment: a program that opens it could read on.
func begin(dir *os.File, mode *fs.FileMode) (*os.File, error) {
	made := fs.FileMode(0o666)
	if mode != nil {
		made &= *mode
	}
	return localdir.Create(int(dir.Fd()), seam.TemporaryName(), uint32(made.Perm()))
}

// syncDir makes a change of the names in a directory durable.
func (b *Backend) syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err == nil {
		err = errors.Join(b.fsync(d), d.Close())
	}
	return localdir.Happened(err)
}

// mkdirAll makes the missing parts of a directory, durably.
func (b *Backend) mkdirAll(parts []string) error {
	at := "."
	for _, part := range parts {
		if err := b.mkdirIn(at, part); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		at = path.Join(at, part)
	}
	info, err := b.stat(at)
	if err == nil && !info.IsDir() {
		err = providers.ErrNotDir
	}
	return err
}

func (b *Backend) mkdirIn(parent, name string) error {
	dir, err := b.enter(parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Mkdir(name, 0o777); err != nil {
		return err
	}
	return b.syncDir(dir)
}

// Mkdir implements seam.Backend.
func (b *Backend) Mkdir(ctx context.Context, l seam.Locator) (seam.Locator, error) {
	err := ctx.Err()
	if err == nil {
		err = b.mkdir(l)
	}
	if err != nil {
		return seam.Locator{}, b.fail(providers.MethodMkdir, l, err)
	}
	return l, nil
}

func (b *Backend) mkdir(l seam.Locator) error {
	if seam.IsTemporary(l.Name()) {
		return seam.ErrTemporary
	}
	info, err := b.stat(keyOf(l))
	if err == nil && !info.IsDir() {
		return providers.ErrExist
	}
	return b.mkdirAll(l.Parts())
}
