// Package vault is a provider over a directory that wsmount shares with agentm, and that
// a program outside may replicate, as Drive or Syncthing do.
//
// It knows the directory, through a descriptor that it opens once: everything below is reached
// with openat2(2) beneath that descriptor, through no symbolic link and into no other mount, so
// that no name and no link leads outside, whatever other programs rename meanwhile.
//
//	p, err := vault.Open(ctx, "/home/a/Vault", vault.Options{})
//	info, err := p.Write(ctx, l, providers.String("hello"), providers.WriteOptions{If: providers.IfVersion(v)})
//	var held *vault.TimeoutError
//	if errors.As(err, &held) { ... } // another process has the vault for too long
//
// # Writing
//
// A change follows agentm's protocol, so that its programs and wsmount do not lose each other's
// updates. Content goes into a temporary file beside its place and is synchronised. Then the
// vault's mutex is taken (see package lock), which one program holds at a time: of wsmount's
// programs one of all, of any user and under any name of the vault; of agentm's one of this
// user's, if they have the same cache directory. Then the directories are locked in which the
// change has names, as writers lock them that reach the file otherwise: a vault in this one or
// around it, or memory in a directory (see package devicelocal). Agentm takes its lock of its own
// vault alone. Then the condition is checked against the present entry. A write then exchanges
// the two (see localdir.Replace), and the content that came out is hashed again: if it has
// changed by then, because of a program that takes no mutex, it is exchanged back, and the change
// fails with ErrConflict. The directory is synchronised, and the mutex given back. A new entry
// never replaces one that appears meanwhile.
//
// A replication, an editor, or a program on another machine takes no mutex. A write does not
// replace a file that such a program makes or renames to the name before the new content gets it,
// nor bytes written into the old file by then; bytes written into the old file later, through an
// open handle, are lost. For a moment the name shows content that is then refused, and a process
// that is killed in that moment leaves the other program's content under the temporary name. A
// deletion and a move check again right before: a change by such a program in the microseconds
// after that is removed or overwritten, and so it is by a write where the file system cannot
// exchange names. Capabilities has this as GuardChecked. Two machines that write the same file at
// the same time are the replication's business: it makes a copy of one (see
// providers.IsConflictCopy), which is a file like any other for this package.
//
// agentm's mutex is one of this user's, in ~/.cache, so the vault must be this user's too: Open
// refuses to change another's, whose programs take a lock of that user. It is made by the first
// change, and not by Open, which changes nothing.
//
// # Versions
//
// A version is the SHA-256 of the content, never a time: a replication sets times as it likes. So
// it comes back when the content does, and attributes do not change it. Telling it needs the
// content; the hash of a file is remembered under the file's stat(2), unless that is so new that
// a change might hide in the same tick of the clock. So the first listing of a directory reads
// its files, and later ones do not; a caller without need for versions has no file read (see
// providers.Glancer). A file that this user may not read has a version by its times, since there
// is nothing else. One that changes whenever it is read, as a log does, has a version that is
// never told twice, so that it is listed with the others and no condition holds for it.
//
// # Temporary files
//
// They are named as agentm names them, <name>.<pid>.<32 hex digits>.tmp. Those of this provider
// are not listed, and have no name before they are to be placed where the file system has such
// files (O_TMPFILE). One that a killed process left, of any program, is a file like any other: it
// may hold content that a person misses, and wsmount never removes it.
package vault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/vault/internal/lock"
)

const name = "vault"

// Options: the zero value works.
type Options struct {
	Locks    string       // the directory with agentm's locks, which a change makes; "": agentm's own
	ReadOnly bool         // nothing will be changed, so no lock is needed
	PageSize int          // entries in a page of List at most; 0: 1000
	Logger   *slog.Logger // entries that are passed over, at level debug; nil: silent

	granted string // the directory's own numbers, as isGranted compares them; "": any
}

// TimeoutError says that another process holds the mutex of the vault, and lives. A
// change that fails with it is also ErrUnavailable, and has not happened.
type TimeoutError = lock.TimeoutError

// DirectoryTimeoutError says that another process holds the lock of a directory in the vault.
// It is ErrUnavailable too, and the change has not happened.
type DirectoryTimeoutError = localdir.TimeoutError

// Provider is a vault. Make it with Open.
type Provider struct {
	opts  Options
	mutex *lock.Lock // nil: read-only
	sums  sums
	temps temps

	// life is held for reading by every verb, for writing by Close, so that no verb uses a
	// descriptor that is closed, or used for another file by then.
	life   sync.RWMutex
	root   int // descriptor of the directory
	closed bool

	fsync func(fd int) error // unix.Fsync
	at    func(step)         // for tests: called after each step of a change
}

// step is a step of a change.
type step string

// The steps of a change.
const (
	stepFilled   step = "filled"   // the temporary file is on the disk
	stepHeld     step = "held"     // the mutex is held
	stepLooked   step = "looked"   // the condition holds
	stepChanged  step = "changed"  // the name leads to the new content
	stepSynced   step = "synced"   // and does so after loss of power
	stepReleased step = "released" // the mutex is given back
)

var _ interface {
	providers.Provider
	providers.Mover
	providers.AttrSetter
	providers.Glancer
} = (*Provider)(nil)

// Open takes an existing directory, which may be a symbolic link to one. It changes
// nothing. It fails with ErrNotExist, ErrNotDir or ErrPermission; with a *LockError where
// the vault could not be changed because of its lock; and with ErrUnsupported where the
// kernel has no openat2 (before 5.6).
func Open(ctx context.Context, vault string, opts Options) (*Provider, error) {
	if opts.PageSize <= 0 {
		opts.PageSize = 1000
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := open(ctx, vault, opts)
	return p, translate(providers.MethodOpen, providers.Locator{}, err)
}

func open(ctx context.Context, vault string, opts Options) (_ *Provider, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if vault == "" {
		return nil, fmt.Errorf("no vault given: %w", providers.ErrInvalid)
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(vault, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if err := opts.isGranted(&st); err != nil {
		return nil, err
	}
	p := &Provider{opts: opts, root: fd, fsync: unix.Fsync, at: func(step) {}}
	probe, err := p.beneath(".", unix.O_PATH)
	if err != nil {
		return nil, err
	}
	unix.Close(probe)
	if !opts.ReadOnly {
		p.mutex, err = p.openLock(int(st.Uid))
	}
	return p, err
}

// openLock is the mutex of the open directory, which belongs to a user.
func (p *Provider) openLock(owner int) (*lock.Lock, error) {
	if owner != os.Geteuid() {
		return nil, &LockError{fmt.Sprintf("the vault belongs to user %d, whose programs use a lock of that user", owner),
			"run wsmount as that user, or read-only", providers.ErrPermission}
	}
	// As realpath(3) gives it, of the open directory and not of the one that has the name by now.
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", p.root))
	if err != nil {
		return nil, err
	}
	locks := p.opts.Locks
	if locks == "" {
		locks, err = lock.Root()
	}
	if err == nil {
		locks, err = localdir.Real(locks)
	}
	if err != nil {
		return nil, &LockError{fmt.Sprintf("there is no place for the vault's lock: %v", err), moveCache, providers.ErrInvalid}
	}
	if rel, err := filepath.Rel(real, locks); err != nil || filepath.IsLocal(rel) {
		return nil, &LockError{fmt.Sprintf("the vault's lock would lie in the vault, in %s, where it is replicated", locks), moveCache, providers.ErrInvalid}
	}
	if err := localdir.CheckWritable(locks); err != nil {
		return nil, &LockError{fmt.Sprintf("the vault's lock cannot be made in %s: %v", locks, err), moveCache, providers.ErrUnavailable}
	}
	return lock.New(p.root, lock.Place(locks, real), lock.Options{}), nil
}

// LockError says that a vault cannot be changed because its lock cannot be taken, and the remedy.
type LockError struct {
	Says, Do string
	Kind     error // as of package providers
}

// Error says both.
func (e *LockError) Error() string { return e.Says + ": " + e.Do }

// Unwrap is the kind.
func (e *LockError) Unwrap() error { return e.Kind }

const moveCache = "set XDG_CACHE_HOME to a directory outside of the vault that can be written"

// Locks is where agentm keeps its locks of vaults of this user.
func Locks() (string, error) { return lock.Root() }

// Look tells whether Open would open a vault, for changes or for reading alone, and if not, the
// remedy. It changes nothing.
func Look(ctx context.Context, vault string, readOnly bool) providers.Finding {
	f := providers.Finding{Name: name, Says: "files in " + vault}
	p, err := Open(ctx, vault, Options{ReadOnly: readOnly})
	if err == nil {
		err = p.Close()
	}
	if cache := os.Getenv("XDG_CACHE_HOME"); cache != "" && !readOnly {
		f.Says += fmt.Sprintf(", with its lock in %s ($XDG_CACHE_HOME), which an agentm that has another cache directory does not take", cache)
	}
	var refused *LockError
	if errors.As(err, &refused) {
		f.Grade, f.Says, f.Do = providers.Bad, refused.Says, refused.Do
	} else if err != nil {
		f.Grade, f.Says, f.Do = providers.Bad, err.Error(), "let it be read and written"
	}
	return f
}

// lockError is err without its number, which would be taken for one of the vault's files.
func lockError(err error) error {
	return fmt.Errorf("the vault's lock: %v: %w", err, providers.ErrUnavailable)
}

func capabilities() providers.Capabilities {
	return providers.Capabilities{
		Writable: true, Durable: true, EmptyDirs: true, StrictTree: true, AnyNames: true, Symlinks: true,
		ListComplete: true, ConcurrentWriters: true, ConflictFiles: true, Sync: true,
		Attributes: providers.AttrMode | providers.AttrModTime,
		Conditions: providers.Conditions{
			Create: providers.GuardAtomic, Replace: providers.GuardChecked, Delete: providers.GuardChecked,
			Move: providers.GuardChecked, SetAttr: providers.GuardChecked,
		},
		Abilities: providers.AbilityMove | providers.AbilityAttr,
	}
}

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities {
	c := capabilities()
	if p.opts.ReadOnly {
		c.Writable, c.Abilities = false, 0
	}
	return c
}

// Close implements providers.Provider. It waits for calls under way; bodies that Read
// returned stay readable.
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
		switch {
		case p.closed:
			return none, providers.ErrClosed
		case p.opts.ReadOnly && m.Mutates():
			return none, providers.ErrReadOnly
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
	case unix.EACCES, unix.EPERM, unix.EXDEV: // openat2 says EXDEV for a way out, and into another mount
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
