package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/vault/internal/lock"
)

// directoryTimeout is how long a change waits for the lock of a directory. Other changes of the
// vault wait meanwhile.
const directoryTimeout = 10 * time.Second

// turn has the locks of a change: the vault's mutex, and the locks of the directories in which it
// changes names. Those are also taken by writers that reach the same files another way: by a
// vault that lies in this one or around it, or as memory in a directory (see package
// devicelocal).
//
// Of several locks, that of a directory is taken before those of directories in it, and else in
// the order of their names, which is the same from every vault around them. So no two writers
// wait for each other.
type turn struct {
	p    *Provider
	held *lock.Held
	dirs []directory
}

// directory is one that a turn has entered.
type directory struct {
	at      providers.Locator
	fd      int   // its lock is held
	missing error // the reason why there is none
}

// locked runs f in a turn of the vault.
func (p *Provider) locked(ctx context.Context, f func(*turn) error) (err error) {
	held, err := p.mutex.Acquire(ctx)
	var timeout *TimeoutError
	switch {
	case err == nil:
	case errors.As(err, &timeout), errors.Is(err, providers.ErrUnsupported), ctx.Err() != nil:
		return err
	default:
		return lockError(err)
	}
	t := &turn{p: p, held: held}
	defer func() {
		// The change stays, whatever happens to the lock: one that cannot be removed gets stale.
		t.leave()
		if failed := held.Release(); failed != nil {
			p.opts.Logger.Warn("the vault's lock could not be given back", "error", failed)
		}
		p.at(stepReleased)
	}()
	p.at(stepHeld)
	return f(t)
}

// Exclusively runs f while the vault's mutex is held, for another component that changes files of
// the vault, such as the server of the mount that it lies in. f takes the locks of directories.
func (p *Provider) Exclusively(ctx context.Context, f func() error) error {
	var failed error
	_, err := do(ctx, p, providers.MethodWrite, providers.Locator{}, func() (struct{}, error) {
		return struct{}{}, p.locked(ctx, func(*turn) error {
			failed = f()
			return nil
		})
	})
	return errors.Join(err, failed)
}

// enter takes the locks of the directories in which f changes names, once in a turn. A missing
// directory has none, and within reports it.
func (t *turn) enter(ctx context.Context, dirs ...providers.Locator) error {
	slices.SortFunc(dirs, providers.Locator.Compare)
	for _, at := range slices.Compact(dirs) {
		fd, err := t.lock(ctx, at)
		switch err {
		case nil, unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
			t.dirs = append(t.dirs, directory{at, fd, err})
		default:
			return err
		}
	}
	return nil
}

// lock opens a directory and takes its lock, unless this turn has that already: that of the vault
// itself, or on a file system that ignores case that of the same directory.
func (t *turn) lock(ctx context.Context, at providers.Locator) (int, error) {
	for w := localdir.NewWait(directoryTimeout); ; {
		fd, err := t.p.openDir(at, unix.O_RDONLY)
		if err != nil {
			return -1, err
		}
		has, err := t.has(fd)
		if err == nil && !has {
			err = localdir.Lock(ctx, fd, directoryTimeout)
		}
		is := has
		if err == nil && !is { // it may have been removed or moved while its lock was waited for
			is, err = t.isAt(fd, at)
		}
		if err == nil && is {
			return fd, nil
		}
		giveBack(fd)
		if err == nil {
			err = w.Once(ctx, fmt.Errorf("the directory is replaced all the time: %w", providers.ErrConflict))
		}
		if err != nil {
			return -1, err
		}
	}
}

// has reports whether this turn holds the lock of a directory.
func (t *turn) has(fd int) (bool, error) {
	held := []int{t.p.root}
	for _, d := range t.dirs {
		if d.missing == nil {
			held = append(held, d.fd)
		}
	}
	for _, one := range held {
		if same, err := localdir.IsSame(one, fd); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// isAt reports whether an open directory has its name still.
func (t *turn) isAt(fd int, at providers.Locator) (bool, error) {
	now, err := t.p.openDir(at, unix.O_PATH)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return false, nil
	default:
		return false, err
	}
	defer unix.Close(now)
	return localdir.IsSame(fd, now)
}

// leave gives back the locks of the directories.
func (t *turn) leave() {
	for _, d := range t.dirs {
		if d.missing == nil {
			giveBack(d.fd)
		}
	}
}

// giveBack closes a directory. Where another descriptor has the lock, it stays.
func giveBack(fd int) {
	_ = localdir.Unlock(fd) // a child that is being started has the descriptor too
	unix.Close(fd)
}

// still is an error where the vault's mutex is not held any more. It is called right before the
// change.
func (t *turn) still() error {
	if err := t.held.Check(); err != nil {
		return lockError(err)
	}
	return nil
}

// within is Provider.within in a directory that was entered.
func (t *turn) within(l providers.Locator, f func(dir int, name string) error) error {
	if l.IsRoot() {
		return f(t.p.root, ".")
	}
	for _, d := range t.dirs {
		if d.at == l.Parent() && d.missing == nil {
			return f(d.fd, l.Name())
		} else if d.at == l.Parent() {
			return d.missing
		}
	}
	return fmt.Errorf("%s was not entered: %w", l.Parent(), providers.ErrInvalid)
}

// settle brings a change, which other programs see by now, to the disk, in the directories whose
// names it changed.
func (t *turn) settle() error {
	t.p.at(stepChanged)
	for _, d := range t.dirs {
		if d.missing != nil {
			continue
		}
		if err := localdir.Happened(retryErr(func() error { return t.p.fsync(d.fd) })); err != nil {
			return err
		}
	}
	t.p.at(stepSynced)
	return nil
}
