// Package devicelocal is memory in plain files of this machine, below one directory: the place
// for an engine that was told of no other.
//
// It knows files. It promises none of seam.Capabilities: a write is atomic and has reached the
// disk when it returns, but nothing keeps another program from overwriting it. Writers through
// this package take turns, by a lock (flock(2)) of the file's directory, so that the conditions
// of WriteIf hold among them: a file has one lock, whatever directory a backend was opened at,
// and whatever links lead to it. A vault around the directory takes that lock too (see package
// vault). A writer that waits too long for the lock gets a TimeoutError. A mount shows
// directories of its own, with locks of their own: in a mount, its server is asked for the lock
// of the directory behind it (see Mount). A mount below the directory is not known: in it,
// WriteIf is providers.ErrUnsupported.
//
// Against programs that take no lock, in a mount too, WriteIf replaces nothing that gets the name
// before the new content does: the two are exchanged, and exchanged back if the old content is
// not the expected one (see localdir.Replace). Bytes written later into the old file, through an
// open handle, are lost. For a moment the name shows content that is then refused, and a process
// killed in that moment leaves the other's content under a temporary name. Where names cannot be
// exchanged, a file that gets the name just before the rename is replaced.
//
//	b, err := devicelocal.Open("/home/ann/.agentm/memory")
//
// Any other existing directory may be used so: OpenGranted.
//
// Nothing outside the directory is reached, not even through symbolic links. A link to a file
// inside is read, and never written to.
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

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/seam"
)

// Protocol is the name that a registry has it under.
const Protocol = seam.DeviceLocal

// Backend is a directory. Make it with Open or OpenGranted.
type Backend struct {
	root  *os.Root
	name  string // the subject of error messages
	plain bool   // it is entered through no symbolic link: see enter and beneath
	fsync func(*os.File) error
	mount Mount // nil: it lies in none

	compared func() // for tests: called when the entry to be replaced was compared, and has its name
}

// Mount is the server of a mount that a directory lies in. It is asked about directories by their
// real names in the mount, from any goroutine.
type Mount interface {
	// Sends reports whether a closed file of dir is sent under its name of that moment.
	Sends(dir string) bool
	// Lock is Backend.Lock of the file at name in the directory behind dir, until unlock. The
	// error has a kind of package providers.
	Lock(ctx context.Context, dir, name string, old *seam.ETag) (unlock func(), err error)
}

var _ seam.Conditional = (*Backend)(nil)

// Open is the backend of a directory, which is made, for its user alone, if it is missing.
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

// Granted identifies a directory, whatever has its name by now. The zero value is any.
type Granted struct{ Dev, Ino uint64 }

// OpenGranted is the backend of an existing directory. In a granted one no symbolic link leads to
// a changed file, so that a name tells which file that is, and nothing is reached that is mounted
// below.
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

// OpenMounted is the backend of a directory of a mount. Where the mount sends closed files, a
// file gets its name before it is closed: temporary files reach no store. plain: no symbolic link
// leads to a changed file.
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

func keyOf(l seam.Locator) string { return nameOf(l.Parts()) }

func nameOf(parts []string) string { return path.Join(".", path.Join(parts...)) }

// parentOf are the parts of the directory of l; l is not the root.
func parentOf(l seam.Locator) []string {
	parts := l.Parts()
	return parts[:len(parts)-1]
}

// absent is err for a verb that reads: a place below a file is missing.
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
	if errors.Is(err, fs.ErrNotExist) { // the system's words name it once more
		err = providers.ErrNotExist
	}
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
