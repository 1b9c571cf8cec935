// Package devicelocal is memory in plain files of this machine, below one directory: what
// an engine uses that was told of no other place.
//
// It knows files. It promises none of seam.Capabilities: a write is atomic and has
// reached the disk when it returns, but nothing keeps another program from overwriting it.
// Those that write through this package take turns, by a lock (flock(2)) of the directory that
// the file lies in, so that what WriteIf asks holds among them: a file has one lock, whatever
// directory a backend was opened at, and whatever links lead there. A vault that it lies in takes
// that lock too (see package vault). Who waits too long for the lock gets a
// TimeoutError. A mount shows directories of its own, whose locks are others: there, the one that
// serves the mount is asked for the lock of the directory behind it (see Mount). One that is mounted
// below the directory is not known: there, WriteIf is providers.ErrUnsupported.
//
// Of programs that take no lock, in a mount too, WriteIf replaces nothing that has the name before
// the new content has it: the two are exchanged, and exchanged back if what came out is not what
// was asked for (see localdir.Replace). What a program writes later into the old file, which it had
// open, is lost. For a moment the name shows what then is refused, and a process that is killed in
// that moment leaves the other's content under a temporary name. Where the file system cannot
// exchange names, what gets the name in the moment before the rename is replaced.
//
//	b, err := devicelocal.Open("/home/ann/.agentm/memory")
//
// Any other directory that is there may be used so: OpenGranted.
//
// Nothing outside the directory is reached, through symbolic links neither. A link is
// read where it leads, and never written to.
//
// A write makes a temporary file beside its target, which has no name until it is whole where the
// file system has such files. A program that is killed after that leaves it, under a name of its
// own that is never listed.
package devicelocal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/seam"
)

// Protocol is the name that a registry has it under.
const Protocol = seam.DeviceLocal

// Backend is a directory. Make it with Open or OpenGranted.
type Backend struct {
	root  *os.Root
	name  string // who says what went wrong
	plain bool   // it is entered through no symbolic link: see enter and beneath
	fsync func(*os.File) error
	mount Mount // nil: it lies in none

	compared func() // for tests: called when what is to be replaced was compared, and has its name
}

// Mount is what serves a mount that a directory lies in. It is asked about directories by their
// real names in the mount, from any goroutine.
type Mount interface {
	// Sends reports whether a file of dir that is closed is sent under the name that it has then.
	Sends(dir string) bool
	// Lock is Backend.Lock of the file at name in the directory behind dir, until unlock. The
	// error has a kind of package providers.
	Lock(ctx context.Context, dir, name string, old *seam.ETag) (unlock func(), err error)
}

var _ seam.Conditional = (*Backend)(nil)

// Open is the backend of a directory, which is made, for its user alone, where there is none.
func Open(dir string) (*Backend, error) {
	err := localdir.MkdirAll(dir)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			return newBackend(root, Protocol), nil
		}
	}
	return nil, fail(Protocol, providers.MethodOpen, seam.Locator{}, err)
}

func newBackend(root *os.Root, name string) *Backend {
	return &Backend{root: root, name: name, fsync: (*os.File).Sync, compared: func() {}}
}

// Granted says which directory it is, whatever has its name by now. The zero value is any.
type Granted struct{ Dev, Ino uint64 }

// OpenGranted is the backend of a directory that is there. In one that was granted no
// symbolic link leads to what is changed, so that a name tells which file that is, and
// nothing is reached that is mounted below.
func OpenGranted(dir string, g Granted) (*Backend, error) {
	const name = "directory"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fail(name, providers.MethodOpen, seam.Locator{}, err)
	}
	b := newBackend(root, name)
	if b.plain = g != (Granted{}); b.plain {
		var info fs.FileInfo
		if info, err = root.Stat("."); err == nil {
			if st := info.Sys().(*syscall.Stat_t); st.Dev != g.Dev || st.Ino != g.Ino {
				err = fmt.Errorf("the directory was replaced since it was granted: %w", providers.ErrPermission)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(fail(name, providers.MethodOpen, seam.Locator{}, err), root.Close())
	}
	return b, nil
}

// OpenMounted is the backend of a directory of a mount. Where that sends what is closed, only
// what has its name by then is: temporary files reach no store. plain: no symbolic link leads to
// what is changed.
func OpenMounted(dir string, m Mount, plain bool) (*Backend, error) {
	b, err := OpenGranted(dir, Granted{})
	if err == nil {
		b.mount, b.plain = m, plain
	}
	return b, err
}

// Resolve implements seam.Backend.
func (b *Backend) Resolve(parts ...string) (seam.Locator, error) {
	return seam.Locator{}.Child(parts...)
}

// Capabilities implements seam.Backend.
func (b *Backend) Capabilities() seam.Capabilities { return seam.Capabilities{} }

// Close implements seam.Backend.
func (b *Backend) Close() error { return b.root.Close() }

// Read implements seam.Backend.
func (b *Backend) Read(ctx context.Context, l seam.Locator) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", b.fail(providers.MethodRead, l, err)
	}
	data, err := b.read(keyOf(l))
	if err != nil {
		return "", b.fail(providers.MethodRead, l, absent(err))
	}
	return string(data), seam.CheckText(l, string(data))
}

// read opens without waiting: a FIFO has no content, and might have no writer.
func (b *Backend) read(name string) ([]byte, error) {
	f, err := b.open(name, os.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkKind(info.Mode()); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

func checkKind(mode fs.FileMode) error {
	switch {
	case mode.IsDir():
		return providers.ErrIsDir
	case !mode.IsRegular():
		return fmt.Errorf("no regular file is there: %w", providers.ErrUnsupported)
	}
	return nil
}

// Write implements seam.Backend. The mode of a file that is there stays.
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

// put replaces what is at l, with the lock of the directory that it lies in.
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
		// The directory was removed while its lock was waited for: there is another by now, or
		// it is made anew.
		if err := w.Once(ctx, err); err != nil {
			return err
		}
	}
}

// putIn is put in an open directory, which it closes.
func (b *Backend) putIn(ctx context.Context, dir *os.Root, l seam.Locator, content string, old *seam.ETag) (err error) {
	defer dir.Close()
	unlock, err := b.lock(ctx, dir, l.Name(), old)
	if errors.Is(err, providers.ErrUnsupported) && old == nil { // who asks nothing needs none
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

// parent opens the directory that l lies in. A missing one is made, unless old says that l
// has content.
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

// Lock takes the lock that a change of l takes, and gives it back with unlock. Where old is
// not nil and the file has other content, or is there although old is seam.None, it is
// providers.ErrConflict. It is for what changes the file by another way, as through a mount;
// providers.ErrNotExist where the directory is missing that l lies in. The error has a kind of
// package providers.
func (b *Backend) Lock(ctx context.Context, l seam.Locator, old *seam.ETag) (unlock func(), err error) {
	if err = checkName(l); err == nil {
		var dir *os.Root
		if dir, err = b.enter(nameOf(parentOf(l))); err == nil {
			defer dir.Close()
			unlock, err = b.lock(ctx, dir, l.Name(), old)
		}
	}
	if err != nil && providers.KindOf(err).Err == nil {
		err = fmt.Errorf("%w: %w", kindOf(err), err)
	}
	return unlock, err
}

// lock takes the lock of an open directory, for the file at a name in it, and compares that.
func (b *Backend) lock(ctx context.Context, dir *os.Root, name string, old *seam.ETag) (unlock func(), err error) {
	if err := b.isOneMount(dir); err != nil {
		return nil, err
	}
	if b.mount != nil {
		at, err := realName(dir)
		if err != nil {
			return nil, err
		}
		return b.mount.Lock(ctx, at, name, old)
	}
	unlock, err = lock(ctx, dir)
	if err != nil || old == nil {
		return unlock, err
	}
	if err := b.in(dir).compare(name, *old); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// in is the backend of an open directory of it.
func (b *Backend) in(dir *os.Root) *Backend {
	in := *b
	in.root = dir
	return &in
}

// compare is seam.Changed if old is not the etag of the file at a name.
func (b *Backend) compare(name string, old seam.ETag) error {
	now := seam.None
	info, err := b.root.Lstat(name)
	if err == nil {
		err = checkKind(info.Mode())
	}
	if err == nil {
		var data []byte
		data, err = b.read(name)
		now = seam.ETagOf(string(data))
	}
	if errors.Is(err, fs.ErrNotExist) {
		now, err = seam.None, nil
	}
	if err == nil && now != old {
		err = seam.Changed(now)
	}
	return err
}

// realName is what the kernel knows an open directory by.
func realName(dir *os.Root) (string, error) {
	d, err := dir.Open(".")
	if err != nil {
		return "", err
	}
	defer d.Close()
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", d.Fd()))
}

// timeout is how long to wait for a lock.
const timeout = 30 * time.Second

// TimeoutError says that another process has kept the directory's lock for too long.
type TimeoutError = localdir.TimeoutError

// lock keeps other writers of a directory out, in this process and others.
// providers.ErrUnsupported where the file system has no such locks.
func lock(ctx context.Context, dir *os.Root) (unlock func(), err error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	if err := localdir.Lock(ctx, int(d.Fd()), timeout); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return func() { _ = localdir.Unlock(int(d.Fd())); d.Close() }, nil
}

// write replaces what is at l in the directory that it lies in, whose lock is held where there
// is one. old is that of WriteIf, or nil.
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

// place gives a temporary file its name in a directory, of which at is a descriptor, unless a program
// that takes no lock has changed what has the name since it was compared.
func (b *Backend) place(dir *os.Root, at int, temp, name string, open bool, old *seam.ETag) error {
	if old == nil {
		return dir.Rename(temp, name)
	}
	in := b.in(dir)
	if *old == seam.None {
		err := localdir.Rename(at, temp, at, name, unix.RENAME_NOREPLACE)
		if errors.Is(err, fs.ErrExist) {
			if err = in.compare(name, seam.None); err == nil { // it is gone again
				err = providers.ErrConflict
			}
		}
		return err
	}
	if err := in.compare(name, *old); err != nil { // so that it keeps its name all the time
		return err
	}
	b.compared()
	return localdir.Replace(at, temp, at, name, open, func(_ int, name string) error { return in.compare(name, *old) })
}

// replace puts a whole file at a place, whose directory is open, with the mode of the old one,
// if there is one, or that of a new file. It has its name when it is on the disk; where it is
// sent with its name, before that.
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

// sends reports whether what is closed in an open directory is sent.
func (b *Backend) sends(dir *os.Root) (bool, error) {
	if b.mount == nil {
		return false, nil
	}
	at, err := realName(dir)
	return err == nil && b.mount.Sends(at), err
}

// begin makes a temporary file, without its name where that can be. What the mode of the old one
// keeps from others is not for them for a moment either: who has it open reads on.
func begin(dir *os.File, mode *fs.FileMode) (*os.File, error) {
	made := fs.FileMode(0o666)
	if mode != nil {
		made &= *mode
	}
	return localdir.Create(int(dir.Fd()), seam.TemporaryName(), uint32(made.Perm()))
}

// syncDir makes the names in a directory durable that a change has left there.
func (b *Backend) syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err == nil {
		err = errors.Join(b.fsync(d), d.Close())
	}
	return localdir.Happened(err)
}

// mkdirAll makes what is missing of a directory, durably.
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

// List implements seam.Backend.
func (b *Backend) List(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
	err := ctx.Err()
	var names []string
	if err == nil {
		names, err = b.names(keyOf(l))
	}
	if err = absent(err); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, b.fail(providers.MethodList, l, err)
	}
	return seam.Children(l, slices.DeleteFunc(names, seam.IsTemporary))
}

func (b *Backend) names(name string) ([]string, error) {
	d, err := b.open(name, os.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Exists implements seam.Backend.
func (b *Backend) Exists(ctx context.Context, l seam.Locator) (bool, error) {
	_, err := b.Info(ctx, l)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Info implements seam.Backend.
func (b *Backend) Info(ctx context.Context, l seam.Locator) (seam.Info, error) {
	err := ctx.Err()
	var info fs.FileInfo
	if err == nil {
		info, err = b.stat(keyOf(l))
	}
	if err != nil {
		return seam.Info{}, b.fail(providers.MethodStat, l, absent(err))
	}
	size := info.Size()
	if info.IsDir() {
		size = 0
	}
	return seam.Info{Locator: l, IsDir: info.IsDir(), Size: size, ModTime: info.ModTime()}, nil
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

func keyOf(l seam.Locator) string { return nameOf(l.Parts()) }

func nameOf(parts []string) string { return path.Join(".", path.Join(parts...)) }

// parentOf are the parts of what l lies in; l is not the root.
func parentOf(l seam.Locator) []string {
	parts := l.Parts()
	return parts[:len(parts)-1]
}

// absent is err for a verb that reads: below a file there is nothing.
func absent(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

func (b *Backend) fail(op providers.Method, l seam.Locator, err error) error {
	return fail(b.name, op, l, err)
}

func fail(name string, op providers.Method, l seam.Locator, err error) error {
	return providers.Fail(name, op, l.Place(), err, kindOf(err))
}

// kindOf is the kind of an error of the operating system.
func kindOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return seam.KindOf(errno)
	}
	return providers.ErrPermission // a link leads outside, which has no number
}
