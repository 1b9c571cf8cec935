package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// unserved is a backend on a volume that no kernel serves. It does for the verbs the same
// as a mount for programs, but does not follow symbolic links.
type unserved struct {
	volume fs.Volume
	end    func() error
	op     fs.Op
	wins   bool // the last change that is sent replaces those of others
	has    seam.Capabilities
	mu     sync.Mutex // held by writers, so that a checked condition still holds
}

func newUnserved(v fs.Volume, has seam.Capabilities, wins bool, end func() error) *unserved {
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	return &unserved{volume: v, end: end, has: has, wins: wins, op: fs.Op{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), PID: uint32(os.Getpid()), Umask: uint32(mask)}}
}

// Close implements seam.Backend. The error names the changes that were to be sent and are not.
func (u *unserved) Close() error { return u.end() }

// Resolve implements seam.Backend.
func (u *unserved) Resolve(parts ...string) (seam.Locator, error) {
	return seam.Locator{}.Child(parts...)
}

// Capabilities implements seam.Backend.
func (u *unserved) Capabilities() seam.Capabilities { return u.has }

// held is an inode of the volume with a reference to it.
type held struct {
	fs.Entry
	forget func()
}

func (h held) kind() uint32 { return h.Attr.Mode & unix.S_IFMT }

// root returns the root inode, which needs no reference.
func (u *unserved) root() (held, error) {
	attr, err := u.volume.Attr(&u.op, fs.RootIno, nil)
	return held{fs.Entry{Ino: fs.RootIno, Attr: attr}, func() {}}, err
}

// in looks up a name in a directory.
func (u *unserved) in(dir held, name string) (held, error) {
	if dir.kind() != unix.S_IFDIR {
		return held{}, syscall.ENOTDIR
	}
	e, err := u.volume.Lookup(&u.op, dir.Ino, name)
	if err == nil && e.Ino == 0 {
		err = syscall.ENOENT
	}
	return held{e, func() { u.volume.Forget(e.Ino, 1) }}, err
}

// find walks a path from the root. With make, it makes missing directories.
func (u *unserved) find(way []string, make bool) (held, error) {
	at, err := u.root()
	for _, name := range way {
		if err != nil {
			break
		}
		var next held
		next, err = u.in(at, name)
		if make && errors.Is(err, syscall.ENOENT) {
			var e fs.Entry
			e, err = u.volume.Mkdir(&u.op, at.Ino, name, 0o777)
			next = held{e, func() { u.volume.Forget(e.Ino, 1) }}
		}
		at.forget()
		at = next
	}
	return at, err
}

// look finds l for a verb that reads: a name below a file does not exist.
func (u *unserved) look(ctx context.Context, l seam.Locator) (held, error) {
	if err := ctx.Err(); err != nil {
		return held{}, err
	}
	h, err := u.find(l.Parts(), false)
	if errors.Is(err, syscall.ENOTDIR) {
		err = fmt.Errorf("%w: %w", providers.ErrNotExist, err)
	}
	return h, err
}

// Read implements seam.Backend.
func (u *unserved) Read(ctx context.Context, l seam.Locator) (string, error) {
	for {
		h, err := u.look(ctx, l)
		var text string
		if err == nil {
			text, err = u.read(h)
			h.forget()
		}
		switch {
		case errors.Is(err, fs.ErrStale): // it was replaced meanwhile
			continue
		case err != nil:
			return "", u.fail(providers.MethodRead, l, err)
		}
		return text, seam.CheckText(l, text)
	}
}

func checkFile(h held) error {
	switch h.kind() {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		return providers.ErrIsDir
	}
	return fmt.Errorf("no regular file is there: %w", providers.ErrUnsupported)
}

func (u *unserved) read(h held) (string, error) {
	if err := checkFile(h); err != nil {
		return "", err
	}
	o, err := u.volume.Open(&u.op, h.Ino, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer o.File.Release()
	var text []byte
	for buf := make([]byte, 1<<17); ; {
		d, err := o.File.Read(&u.op, buf, int64(len(text)))
		if err == nil && d.Bytes == nil && d.N > 0 {
			d.N, err = unix.Pread(d.FD, buf[:d.N], d.Off)
			d.Bytes = buf[:max(d.N, 0)]
		}
		if err != nil || len(d.Bytes) == 0 {
			return string(text), err
		}
		text = append(text, d.Bytes...)
	}
}

// Write implements seam.Backend. An existing file keeps its mode.
func (u *unserved) Write(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
	return u.write(ctx, l, content, func(held, error) error { return nil })
}

// WriteIf implements seam.Conditional. Changes of others meanwhile are found when it is
// sent, and then they are a conflict.
func (u *unserved) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	if u.wins {
		return seam.Locator{}, refuse(providers.MethodWrite, l, providers.ErrUnsupported, "a condition cannot be kept where the last writer wins (sync.conflict.policy)")
	}
	return u.write(ctx, l, content, func(h held, err error) error {
		now, text := seam.None, ""
		if err == nil {
			if text, err = u.read(h); err != nil {
				return err
			}
			now = seam.ETagOf(text)
		}
		if now != old {
			return seam.Changed(now)
		}
		return nil
	})
}

// write replaces the file at l if check does not refuse it; check is given the file, or the
// error that there is none.
func (u *unserved) write(ctx context.Context, l seam.Locator, content string, check func(held, error) error) (seam.Locator, error) {
	err := seam.CheckText(l, content)
	if err != nil {
		return seam.Locator{}, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err = ctx.Err(); err == nil {
		err = u.replace(l, content, check)
	}
	if err != nil {
		return seam.Locator{}, u.fail(providers.MethodWrite, l, err)
	}
	return l, nil
}

func (u *unserved) replace(l seam.Locator, content string, check func(held, error) error) error {
	if (l == seam.Locator{}) {
		return providers.ErrIsDir
	}
	if seam.IsTemporary(l.Name()) {
		return seam.ErrTemporary
	}
	mode := uint32(0o666)
	old, err := u.find(l.Parts(), false)
	if err == nil {
		defer old.forget()
		mode = old.Attr.Mode & 0o777
		err = checkFile(old)
	}
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	there := err == nil
	if err := check(old, err); err != nil {
		return err
	}
	dir, err := u.find(l.Parts()[:len(l.Parts())-1], true)
	if err != nil {
		return err
	}
	defer dir.forget()
	return u.put(dir, l.Name(), content, mode, there)
}

// put makes a whole file, with its mode less the umask if it is new, and renames it to
// its name before it can be sent under the temporary one.
func (u *unserved) put(dir held, name, content string, mode uint32, there bool) (err error) {
	temp := seam.TemporaryName()
	e, o, err := u.volume.Create(&u.op, dir.Ino, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, unix.S_IFREG|mode)
	if err != nil {
		return err
	}
	defer u.volume.Forget(e.Ino, 1)
	defer o.File.Release()
	err = u.fill(e.Ino, o.File, content, mode, there)
	if err == nil {
		err = u.volume.Rename(&u.op, dir.Ino, temp, dir.Ino, name, 0)
	}
	if err != nil {
		return errors.Join(err, u.volume.Unlink(&u.op, dir.Ino, temp))
	}
	if err = errors.Join(o.File.Fsync(&u.op, false), o.File.Flush(&u.op), u.sync(dir)); err != nil {
		err = fmt.Errorf("the change was made, and is not safe yet (%v): %w", err, providers.ErrUnavailable)
	}
	return err
}

func (u *unserved) fill(ino fs.Ino, f fs.File, content string, mode uint32, there bool) error {
	if there {
		if _, err := u.volume.SetAttr(&u.op, ino, f, &fs.SetAttr{Mode: &mode}); err != nil {
			return err
		}
	}
	for off := 0; off < len(content); {
		n, err := f.Write(&u.op, []byte(content[off:min(len(content), off+1<<20)]), int64(off))
		if err != nil {
			return err
		}
		off += n
	}
	return nil
}

// sync makes the names in a directory durable.
func (u *unserved) sync(dir held) error {
	d, err := u.volume.OpenDir(&u.op, dir.Ino)
	if err != nil {
		return err
	}
	defer d.Release()
	return d.Fsync(&u.op, false)
}

// List implements seam.Backend.
func (u *unserved) List(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
	h, err := u.look(ctx, l)
	if errors.Is(err, providers.ErrNotExist) || err == nil && h.kind() != unix.S_IFDIR {
		return nil, nil
	}
	var names []string
	if err == nil {
		defer h.forget()
		names, err = fs.Names(u.volume, &u.op, h.Ino)
	}
	if err != nil {
		return nil, u.fail(providers.MethodList, l, err)
	}
	return seam.Children(l, slices.DeleteFunc(names, seam.IsTemporary))
}

// Exists implements seam.Backend.
func (u *unserved) Exists(ctx context.Context, l seam.Locator) (bool, error) {
	_, err := u.Info(ctx, l)
	if errors.Is(err, providers.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Info implements seam.Backend.
func (u *unserved) Info(ctx context.Context, l seam.Locator) (seam.Info, error) {
	h, err := u.look(ctx, l)
	if err != nil {
		return seam.Info{}, u.fail(providers.MethodStat, l, err)
	}
	defer h.forget()
	info := seam.Info{Locator: l, IsDir: h.kind() == unix.S_IFDIR, ModTime: h.Attr.Mtime}
	if !info.IsDir {
		info.Size = int64(h.Attr.Size)
	}
	return info, nil
}

// Mkdir implements seam.Backend.
func (u *unserved) Mkdir(ctx context.Context, l seam.Locator) (seam.Locator, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := ctx.Err()
	if err == nil {
		err = u.mkdir(l)
	}
	if err != nil {
		return seam.Locator{}, u.fail(providers.MethodMkdir, l, err)
	}
	return l, nil
}

func (u *unserved) mkdir(l seam.Locator) error {
	if seam.IsTemporary(l.Name()) {
		return seam.ErrTemporary
	}
	h, err := u.find(l.Parts(), true)
	if err != nil {
		return err
	}
	defer h.forget()
	if h.kind() != unix.S_IFDIR {
		return providers.ErrExist
	}
	return u.sync(h)
}

func (u *unserved) fail(op providers.Method, l seam.Locator, err error) error {
	return providers.Fail("", op, l.Place(), err, seam.KindOf(fs.Errno(err)))
}
