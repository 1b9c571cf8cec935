// Package devicelocal is memory in plain files of this machine, below one directory: what
// an engine uses that was told of no other place.
//
// It knows files. It promises none of seam.Capabilities: a write is atomic and has
// reached the disk when it returns, but nothing keeps another program from overwriting it.
// Those that write through this package take turns, by a lock (flock(2)) of the directory,
// so that what WriteIf asks holds among them. Who waits too long for it gets a TimeoutError.
//
//	b, err := devicelocal.Open("/home/ann/.agentm/memory")
//
// Any other directory that is there may be used so: OpenGranted.
//
// Nothing outside the directory is reached, through symbolic links neither. A link is
// read where it leads, and never written to.
//
// A write makes a temporary file beside its target. A program that is killed in the
// middle leaves one, which has a name of its own and is never listed.
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
	plain bool   // it was granted: see enter and beneath
	fsync func(*os.File) error
	sends func(seam.Locator) bool // a file that is closed is sent under the name that it has then
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
	return &Backend{root: root, name: name, fsync: (*os.File).Sync, sends: func(seam.Locator) bool { return false }}
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

// OpenMounted is the backend of a directory of a mount. Where sends reports that what is
// closed is sent, only what has its name by then is: nobody there sees a temporary file.
func OpenMounted(dir string, sends func(l seam.Locator) bool) (*Backend, error) {
	b, err := OpenGranted(dir, Granted{})
	if err == nil {
		b.sends = sends
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
	data, err := b.read(nameOf(l))
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
	return b.change(ctx, l, content, func() error {
		unlock, err := b.lock(ctx)
		if errors.Is(err, providers.ErrUnsupported) { // who asks nothing needs none
			return b.write(l, content)
		}
		if err != nil {
			return err
		}
		defer unlock()
		return b.write(l, content)
	})
}

// WriteIf implements seam.Conditional.
func (b *Backend) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	return b.change(ctx, l, content, func() error {
		unlock, err := b.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		data, err := b.read(nameOf(l))
		now := seam.ETagOf(string(data))
		if errors.Is(err, fs.ErrNotExist) {
			now, err = seam.None, nil
		}
		if err == nil && now != old {
			err = seam.Changed(now)
		}
		if err != nil {
			return err
		}
		return b.write(l, content)
	})
}

// change is what all that write have in common.
func (b *Backend) change(ctx context.Context, l seam.Locator, content string, write func() error) (seam.Locator, error) {
	err := seam.CheckText(l, content)
	if err != nil {
		return seam.Locator{}, err
	}
	if err = ctx.Err(); err == nil {
		err = write()
	}
	if err != nil {
		return seam.Locator{}, b.fail(providers.MethodWrite, l, err)
	}
	return l, nil
}

// How long to wait before a lock is tried again, since flock(2) itself waits for no
// context, and after which time not any more.
const (
	firstWait = time.Millisecond
	maxWait   = 50 * time.Millisecond
	timeout   = 30 * time.Second
)

// TimeoutError says that another process has kept the directory's lock for too long. It is
// providers.ErrUnavailable; nothing changed.
type TimeoutError struct{ Waited time.Duration }

// Error says how a person finds out who has it.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("another process has held the lock of the directory (flock) for %v: lslocks(8) and fuser(1) say which", e.Waited.Round(time.Second))
}

// Unwrap is providers.ErrUnavailable.
func (e *TimeoutError) Unwrap() error { return providers.ErrUnavailable }

// lock keeps other writers of this package out, in this process and others.
// providers.ErrUnsupported where the file system has no such locks.
func (b *Backend) lock(ctx context.Context) (unlock func(), err error) {
	d, err := b.root.Open(".")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		locked, err := localdir.TryLock(int(d.Fd()))
		if err == nil && locked {
			return func() { _ = localdir.Unlock(int(d.Fd())); d.Close() }, nil
		}
		if waited := time.Since(began); err == nil && waited >= timeout {
			err = &TimeoutError{waited}
		}
		if err == nil {
			err = pause(ctx, wait)
		}
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// write replaces what is at l; a lock is held where there is one.
func (b *Backend) write(l seam.Locator, content string) error {
	if (l == seam.Locator{}) {
		return providers.ErrIsDir
	}
	if seam.IsTemporary(l.Name()) {
		return seam.ErrTemporary
	}
	parts := l.Parts()
	parent := path.Join(".", path.Join(parts[:len(parts)-1]...))
	dir, err := b.enter(parent)
	if errors.Is(err, fs.ErrNotExist) {
		if err = b.mkdirAll(parts[:len(parts)-1]); err == nil {
			dir, err = b.enter(parent)
		}
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	old, err := dir.Lstat(l.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return b.replace(dir, l, content, nil)
	}
	if err == nil {
		err = checkKind(old.Mode())
	}
	if err != nil {
		return err
	}
	mode := old.Mode().Perm()
	return b.replace(dir, l, content, &mode)
}

// replace puts a whole file at a place, whose directory is open, with the mode of the old one,
// if there is one, or that of a new file. It has its name when it is on the disk; where it is
// sent with its name, before that.
func (b *Backend) replace(dir *os.Root, l seam.Locator, content string, mode *fs.FileMode) (err error) {
	f, temp, err := begin(dir, mode)
	if err != nil {
		return err
	}
	named := false
	defer func() {
		if err != nil && !named {
			dir.Remove(temp)
		}
	}()
	if mode != nil {
		err = f.Chmod(*mode)
	}
	if err == nil {
		_, err = f.WriteString(content)
	}
	if err == nil && b.sends(l) {
		err = dir.Rename(temp, l.Name())
		named = err == nil
	}
	if err == nil {
		err = b.fsync(f)
	}
	err = errors.Join(err, f.Close())
	switch {
	case named:
		err = localdir.Happened(err)
	case err == nil:
		err = dir.Rename(temp, l.Name())
	}
	if err != nil {
		return err
	}
	return b.syncDir(dir)
}

// begin makes a temporary file. What the mode of the old one keeps from others is not for them
// for a moment either: who has it open reads on.
func begin(dir *os.Root, mode *fs.FileMode) (f *os.File, temp string, err error) {
	temp = seam.TemporaryName()
	made := fs.FileMode(0o666)
	if mode != nil {
		made &= *mode
	}
	f, err = dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, made)
	return f, temp, err
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
		names, err = b.names(nameOf(l))
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
		info, err = b.stat(nameOf(l))
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
	info, err := b.stat(nameOf(l))
	if err == nil && !info.IsDir() {
		return providers.ErrExist
	}
	return b.mkdirAll(l.Parts())
}

func nameOf(l seam.Locator) string {
	if l.Key() == "" {
		return "."
	}
	return l.Key()
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
	var errno syscall.Errno
	fallback := providers.ErrPermission // a link leads outside, which has no number
	if errors.As(err, &errno) {
		fallback = seam.KindOf(errno)
	}
	return providers.Fail(name, op, l.Place(), err, fallback)
}
