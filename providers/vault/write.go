package vault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
)

// Write implements providers.Provider. An entry that replaces another keeps its mode
// unless opts says otherwise.
func (p *Provider) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodWrite, l, func() (providers.Info, error) {
		if err := checkWrite(l, opts); err != nil {
			return providers.Info{}, err
		}
		dir, at, err := p.nearest(l.Parent())
		if err != nil {
			return providers.Info{}, err
		}
		defer unix.Close(dir)
		if at != l.Parent() { // so l is missing
			if err := opts.If.Allows(providers.MethodWrite, nil); err != nil {
				return providers.Info{}, err
			}
		}
		mode := uint32(0o666) // and the umask, not 0600: a replaced file must not become private
		if opts.Attr.Valid.Has(providers.AttrMode) {
			mode &= opts.Attr.Mode
		} else if at == l.Parent() {
			mode &= modeOf(dir, l.Name())
		}
		name, end := p.temps.begin(l.Name())
		defer end()
		temp := &temporary{dir: dir, name: name}
		defer temp.close()
		if err := temp.fill(ctx, mode, body, opts); err != nil {
			return providers.Info{}, temp.end(err)
		}
		p.at(stepFilled)
		info, err := p.place(ctx, temp, l, opts)
		return info, temp.end(err)
	})
}

// nearest opens the directory l, or the nearest existing one of its parents. A write that fails
// must not leave directories, so they are made last; until then the content lies in a directory
// that is on the same file system.
func (p *Provider) nearest(l providers.Locator) (dir int, at providers.Locator, err error) {
	for {
		dir, err := p.openDir(l, unix.O_RDONLY)
		if err != unix.ENOENT || l.IsRoot() {
			return dir, l, err
		}
		l = l.Parent()
	}
}

// place brings the temporary entry to l, whose parents it makes.
func (p *Provider) place(ctx context.Context, temp *temporary, l providers.Locator, opts providers.WriteOptions) (info providers.Info, err error) {
	err = p.locked(ctx, func(t *turn) error {
		if err := p.mkdirs(l.Parent()); err != nil {
			return err
		}
		if err := t.enter(ctx, l.Parent()); err != nil {
			return err
		}
		return t.within(l, func(dir int, _ string) error {
			info, err = t.replace(ctx, temp, dir, l, opts)
			if err == nil {
				err = t.settle()
			}
			return temp.end(err) // while its directory is open
		})
	})
	return info, err
}

func checkWrite(l providers.Locator, opts providers.WriteOptions) error {
	switch {
	case l.IsRoot():
		return fmt.Errorf("the root is a directory: %w", providers.ErrInvalid)
	case opts.Kind == providers.KindDir || opts.Kind > providers.KindSymlink:
		return fmt.Errorf("a %s cannot be written: %w", opts.Kind, providers.ErrInvalid)
	case opts.If.Kind == providers.ConditionMissing:
		return opts.If.Allows(providers.MethodWrite, nil)
	}
	return nil
}

// modeOf is the mode of a file that is to be replaced; if it is not a file, all bits.
func modeOf(dir int, name string) uint32 {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0o7777
	}
	return st.Mode & 0o7777
}

// temporary is an entry on its way to its place. A file gets its name when it is to be placed,
// where that is possible: see localdir.Create.
type temporary struct {
	dir  int
	name string
	file *os.File // nil: a symbolic link
	over bool     // end was called
}

func (t *temporary) close() {
	if t.file != nil {
		t.file.Close() // it is on the disk, or is removed
	}
}

// end removes it if it is still there after an error, which it returns; not a file that another
// program has put in its place.
func (t *temporary) end(err error) error {
	var left *localdir.LeftError
	if err == nil || t.over || errors.As(err, &left) {
		return err
	}
	t.over = true
	if failed := unix.Unlinkat(t.dir, t.name, 0); failed != unix.ENOENT {
		err = errors.Join(err, failed)
	}
	return err
}

// named gives it its name, in the directory that it is to be placed in: the one that it was begun
// in may be gone. Nothing is written to it any more.
func (t *temporary) named(dir int) error {
	if t.file == nil {
		return nil
	}
	now, err := localdir.Named(t.file, dir)
	if now {
		t.dir = dir
	}
	t.close()
	t.file = nil
	return err
}

// fill makes it: content, attributes, on disk. Until it is whole its mode is never wider than at
// the beginning: a program that has opened it reads all that comes.
func (t *temporary) fill(ctx context.Context, mode uint32, body providers.Body, opts providers.WriteOptions) (err error) {
	if opts.Kind == providers.KindSymlink {
		return fillLink(ctx, t.dir, t.name, body, opts)
	}
	if t.file, err = localdir.Create(t.dir, t.name, mode); err != nil {
		return err
	}
	if _, err := body.CopyTo(ctx, t.file); err != nil {
		return err
	}
	if err := setFileAttr(t.file, opts.Attr); err != nil {
		return err
	}
	return t.file.Sync()
}

// setFileAttr is setAttr of an open file.
func setFileAttr(f *os.File, attr providers.Attr) error {
	if attr.Valid.Has(providers.AttrMode) {
		if err := unix.Fchmod(int(f.Fd()), attr.Mode&0o7777); err != nil {
			return err
		}
	}
	return setModTime(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), attr, 0)
}

func fillLink(ctx context.Context, dir int, temp string, body providers.Body, opts providers.WriteOptions) error {
	var target strings.Builder
	if _, err := body.CopyTo(ctx, &target); err != nil {
		return err
	}
	if target.Len() == 0 || strings.ContainsRune(target.String(), 0) {
		return fmt.Errorf("not a target for a link: %w", providers.ErrInvalid)
	}
	if err := unix.Symlinkat(target.String(), dir, temp); err != nil {
		return err
	}
	return setAttr(dir, temp, providers.KindSymlink, opts.Attr)
}

// setAttr stores the attributes that Linux can: a link has no mode of its own.
func setAttr(dir int, name string, kind providers.Kind, attr providers.Attr) error {
	if attr.Valid.Has(providers.AttrMode) && kind != providers.KindSymlink {
		if err := chmod(dir, name, attr.Mode&0o7777); err != nil {
			return err
		}
	}
	return setModTime(dir, name, attr, unix.AT_SYMLINK_NOFOLLOW)
}

func setModTime(dir int, name string, attr providers.Attr, flags int) error {
	if !attr.Valid.Has(providers.AttrModTime) {
		return nil
	}
	mtime, err := unix.TimeToTimespec(attr.ModTime)
	if err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, mtime}
	return unix.UtimesNanoAt(dir, name, times, flags)
}

// chmod never follows a link that took the file's place, which could lead out of the root.
// Kernels before 6.6 need an open file for that.
func chmod(dir int, name string, mode uint32) error {
	err := unix.Fchmodat(dir, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err != unix.EOPNOTSUPP {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, mode)
}

// replace renames the temporary entry to its place if the condition holds, and the entry that it
// was checked against is still there.
func (t *turn) replace(ctx context.Context, temp *temporary, dir int, l providers.Locator, opts providers.WriteOptions) (providers.Info, error) {
	p := t.p
	current, err := p.look(ctx, dir, l.Name(), l, remembered)
	if err != nil {
		return providers.Info{}, err
	}
	if err := opts.If.Allows(providers.MethodWrite, current); err != nil {
		return providers.Info{}, err
	}
	if err := temp.named(dir); err != nil {
		return providers.Info{}, err
	}
	if err := keepMode(temp.dir, temp.name, current, opts); err != nil {
		return providers.Info{}, err
	}
	made, err := p.look(ctx, temp.dir, temp.name, l, readAnew)
	if err == nil && made == nil {
		err = fmt.Errorf("the temporary file is gone: %w", providers.ErrConflict)
	}
	if err != nil {
		return providers.Info{}, err
	}
	p.at(stepLooked)
	if err := t.still(); err != nil {
		return providers.Info{}, err
	}
	switch {
	case current == nil: // an entry that appears now must not be lost
		err = changedMeanwhile(localdir.Rename(temp.dir, temp.name, dir, l.Name(), unix.RENAME_NOREPLACE), opts.If)
	case current.Kind == providers.KindDir: // which the kernel refuses
		err = localdir.Rename(temp.dir, temp.name, dir, l.Name(), 0)
	default:
		err = localdir.Replace(temp.dir, temp.name, dir, l.Name(), false, func(dir int, name string) error {
			return p.unchanged(ctx, dir, name, current, l)
		})
		if err == unix.ENOENT {
			err = errMeanwhile
		}
	}
	if err != nil {
		return providers.Info{}, err
	}
	return *made, nil
}

var errMeanwhile = fmt.Errorf("by a program that does not take the vault's lock: %w", providers.ErrConflict)

// unchanged is ErrConflict when the content at a name is not that of current, the entry that l
// had, nil for none. Where current is nil, the rename checks.
func (p *Provider) unchanged(ctx context.Context, dir int, name string, current *providers.Info, l providers.Locator) error {
	if current == nil || current.Kind == providers.KindDir {
		return nil
	}
	now, err := p.look(ctx, dir, name, l, readAnew)
	if err == nil && (now == nil || !now.Version.Matches(current.Version)) {
		err = errMeanwhile
	}
	return err
}

// keepMode gives new content the mode of the file that it replaces.
func keepMode(dir int, temp string, current *providers.Info, opts providers.WriteOptions) error {
	if current == nil || current.Kind != providers.KindFile || opts.Kind == providers.KindSymlink ||
		opts.Attr.Valid.Has(providers.AttrMode) {
		return nil
	}
	return chmod(dir, temp, current.Attr.Mode)
}

// changedMeanwhile is the error of a failed RENAME_NOREPLACE for a condition that there was no
// entry.
func changedMeanwhile(err error, cond providers.Condition) error {
	if err == unix.EEXIST && cond.Kind != providers.ConditionAbsent {
		return providers.ErrConflict
	}
	return err
}
