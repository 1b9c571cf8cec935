package cache

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/offline"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/providers"
)

// Accept takes suspect content for good, so that it is sent like any other
// change: a person has looked at it, or has nothing better. Paths choose, a
// directory all below it; none: all. It gives the paths that it was about.
func (v *Volume) Accept(paths ...string) (accepted []string, err error) {
	err = v.update(func(v *Tx) error {
		accepted = offline.Accept(v.Tx, paths...)
		v.wakes = len(accepted) > 0
		return nil
	})
	return accepted, err
}

// Accept does what Volume.Accept does, in a working copy that is not mounted.
func Accept(stateDir string, paths ...string) (accepted []string, err error) {
	if !state.IsOne(stateDir) {
		return nil, &iofs.PathError{Op: "accept", Path: stateDir, Err: syscall.ENOENT}
	}
	o := Options{StateDir: stateDir}
	o.setDefaults()
	s, err := openState(o)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	v := newVolume(nowhere{}, o, s)
	if err = v.recoverLast(); err == nil { // what follows hides from the next start how this one ended
		accepted, err = v.Accept(paths...)
	}
	if err == nil {
		err = recovery.Sync(v.tree, v.store, s.Path, v.updateTree)
	}
	v.stop()
	v.work.Wait()
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return accepted, nil
}

// nowhere is the backend of a working copy that is started without one. It
// promises everything, so that no difference is taken for none.
type nowhere struct{}

var _ providers.Provider = nowhere{}

func (nowhere) Capabilities() providers.Capabilities {
	return providers.Capabilities{Writable: true, ListComplete: true, EmptyDirs: true, Symlinks: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs}
}

func (nowhere) fail(method providers.Method, l providers.Locator) error {
	return &providers.Error{Op: method, Locator: l, Kind: providers.ErrUnavailable}
}

func (n nowhere) Stat(_ context.Context, l providers.Locator) (providers.Info, error) {
	return providers.Info{}, n.fail(providers.MethodStat, l)
}

func (n nowhere) List(_ context.Context, l providers.Locator, _ providers.ListOptions) (providers.Page, error) {
	return providers.Page{}, n.fail(providers.MethodList, l)
}

func (n nowhere) Read(_ context.Context, l providers.Locator, _ providers.ReadOptions) (providers.Content, error) {
	return providers.Content{}, n.fail(providers.MethodRead, l)
}

func (n nowhere) Write(_ context.Context, l providers.Locator, _ providers.Body, _ providers.WriteOptions) (providers.Info, error) {
	return providers.Info{}, n.fail(providers.MethodWrite, l)
}

func (n nowhere) Delete(_ context.Context, l providers.Locator, _ providers.DeleteOptions) error {
	return n.fail(providers.MethodDelete, l)
}

func (n nowhere) Mkdir(_ context.Context, l providers.Locator, _ providers.MkdirOptions) (providers.Info, error) {
	return providers.Info{}, n.fail(providers.MethodMkdir, l)
}

func (nowhere) Close() error { return nil }
