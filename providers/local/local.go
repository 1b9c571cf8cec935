// Package local is a provider whose bytes lie in a directory of this machine.
//
// It knows the directory, through a descriptor that it opens once; everything
// below is reached with openat2, beneath that descriptor and through no
// symbolic link, so that no name and no link leads outside, whatever others
// rename meanwhile. It promises that content appears whole or not at all: it
// is written to a temporary file beside its place, synchronised, and renamed,
// and the directory is synchronised too.
//
//	p, err := local.Open(ctx, "/srv/ws", local.Options{})
//
// A version is what stat says (inode, size, times of change and modification),
// so a change by another program that leaves all of them alone goes unseen; on
// kernels before 6.13, whose file times move in steps of some milliseconds,
// that includes two changes in place within one step.
//
// Creating is atomic. Replacing and deleting look first: providers of this
// package, in any process, exclude each other with flock on the directory; a
// program that asks nobody can still slip between look and act, which
// Capabilities says as GuardChecked.
//
// Names like "<name>.<pid>.<16 hex digits>.tmp" are those of temporary files;
// they are never listed and cannot be used. One that a killed process left
// stays until somebody removes it.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

const name = "local"

// Options: the zero value works.
type Options struct {
	PageSize int          // entries in a page of List at most; 0: 1000
	Logger   *slog.Logger // entries that are passed over, at level debug; nil: silent
}

// Provider is a directory. Make it with Open.
type Provider struct {
	opts Options

	// life is held for reading by every verb, for writing by Close, so that
	// no verb uses a descriptor that is closed, or somebody else's by then.
	life   sync.RWMutex
	root   int // descriptor of the directory
	closed bool

	// change makes look and act one step among our own goroutines; flock on
	// root does among processes, and is taken after change.
	change sync.Mutex

	between func() // for tests: called between look and act of a Write
}

var _ interface {
	providers.Provider
	providers.Mover
	providers.AttrSetter
} = (*Provider)(nil)

// Open takes an existing directory, which may be a symbolic link to one. It
// fails with ErrNotExist, ErrNotDir or ErrPermission, and with ErrUnsupported
// where the kernel has no openat2 (before 5.6).
func Open(ctx context.Context, root string, opts Options) (*Provider, error) {
	if opts.PageSize <= 0 {
		opts.PageSize = 1000
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := open(ctx, root, opts)
	return p, translate(providers.MethodOpen, providers.Locator{}, err)
}

func open(ctx context.Context, root string, opts Options) (*Provider, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if root == "" {
		return nil, fmt.Errorf("no root given: %w", providers.ErrInvalid)
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	p := &Provider{opts: opts, root: fd, between: func() {}}
	probe, err := p.beneath(".", unix.O_PATH)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	unix.Close(probe)
	return p, nil
}

// Drivers opens directories under AIP-35's two names for them.
func Drivers() []providers.Driver {
	return []providers.Driver{
		driver("local-fs", "a directory of this machine that others change too", "mount_path"),
		driver("dev-local", "a directory of this machine, for development", "root"),
	}
}

// driver takes the directory from the key of AIP-35, or from "path", which its
// adapter guide has.
func driver(provider, text, key string) providers.Driver {
	return providers.Driver{
		Name: provider, Text: text, Promises: capabilities(), Keys: []string{key, "path"},
		Open: func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
			root, err := rootOf(s, key)
			if err != nil {
				return nil, translate(providers.MethodOpen, providers.Locator{}, err)
			}
			p, err := Open(ctx, root, Options{Logger: s.Logger})
			if err != nil {
				return nil, err
			}
			return p, nil
		},
	}
}

func rootOf(s providers.Settings, key string) (string, error) {
	if err := s.CheckKeys(key, "path"); err != nil {
		return "", err
	}
	root, other := s.Config[key], s.Config["path"]
	switch {
	case root != "" && other != "" && root != other:
		return "", fmt.Errorf("%s and path differ: %w", key, providers.ErrInvalid)
	case root == "" && other == "":
		return "", fmt.Errorf("config needs %s: %w", key, providers.ErrInvalid)
	case root == "":
		return other, nil
	}
	return root, nil
}

func capabilities() providers.Capabilities {
	return providers.Capabilities{
		Writable: true, Durable: true, EmptyDirs: true, StrictTree: true, AnyNames: true, Symlinks: true,
		ListComplete: true, UniqueVersions: true, ConcurrentWriters: true,
		Attributes: providers.AttrMode | providers.AttrModTime,
		Conditions: providers.Conditions{
			Create: providers.GuardAtomic, Replace: providers.GuardChecked, Delete: providers.GuardChecked,
			Move: providers.GuardChecked, SetAttr: providers.GuardChecked,
		},
		Abilities: providers.AbilityMove | providers.AbilityAttr,
	}
}

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities { return capabilities() }

// Close implements providers.Provider. It waits for calls under way; bodies
// that Read returned stay readable.
func (p *Provider) Close() error {
	p.life.Lock()
	defer p.life.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return translate(providers.MethodClose, providers.Locator{}, unix.Close(p.root))
}

// do runs a verb on the open provider and gives its error the kind.
func do[R any](ctx context.Context, p *Provider, m providers.Method, l providers.Locator, verb func() (R, error)) (R, error) {
	result, err := func() (R, error) {
		var none R
		if err := ctx.Err(); err != nil {
			return none, err
		}
		p.life.RLock()
		defer p.life.RUnlock()
		if p.closed {
			return none, providers.ErrClosed
		}
		return verb()
	}()
	return result, translate(m, l, err)
}

// translate is the one place that gives error numbers their kind.
func translate(m providers.Method, l providers.Locator, err error) error {
	var errno unix.Errno
	if err == nil || errors.Is(err, providers.ErrBody) || !errors.As(err, &errno) {
		return providers.Fail(name, m, l, err, providers.ErrUnavailable)
	}
	// The number itself does not go along: errors.Is finds ErrExist in
	// ENOTEMPTY, for one.
	return &providers.Error{Provider: name, Op: m, Locator: l, Kind: kind(errno), Code: unix.ErrnoName(errno)}
}

func kind(errno unix.Errno) error {
	switch errno {
	case unix.ENOENT:
		return providers.ErrNotExist
	case unix.EEXIST:
		return providers.ErrExist
	case unix.ENOTDIR, unix.ELOOP: // openat2 says ELOOP for a link in the middle
		return providers.ErrNotDir
	case unix.EISDIR:
		return providers.ErrIsDir
	case unix.ENOTEMPTY:
		return providers.ErrNotEmpty
	case unix.EACCES, unix.EPERM, unix.EXDEV: // openat2 says EXDEV for a way out
		return providers.ErrPermission
	case unix.EROFS:
		return providers.ErrReadOnly
	case unix.ENOSPC, unix.EDQUOT:
		return providers.ErrQuota
	case unix.EFBIG:
		return providers.ErrTooLarge
	case unix.ENAMETOOLONG:
		return providers.ErrNameTooLong
	case unix.EINVAL:
		return providers.ErrInvalid
	case unix.ENOSYS, unix.EOPNOTSUPP:
		return providers.ErrUnsupported
	}
	return providers.ErrUnavailable
}

// file wraps a descriptor that nobody else closes.
func file(fd int, l providers.Locator) *os.File { return os.NewFile(uintptr(fd), l.Name()) }
