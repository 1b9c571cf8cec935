package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/cmd/internal/answers"
	"github.com/wsmount/wsmount/cmd/internal/clone"
	"github.com/wsmount/wsmount/cmd/internal/commits"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/freshness"
	"github.com/wsmount/wsmount/cmd/internal/inforce"
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/cmd/internal/told"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

// An Env is the environment in which a volume is opened.
type Env struct {
	Log           *slog.Logger
	Host          *host.Resolver              // the grants of the host configuration
	StateDir      string                      // of this part, locked; only for a Source that is Cached
	SharedDir     string                      // of all parts and mounts: refetchable data; as StateDir
	Ended         func(cache.Activity, error) // told how the store's own work ended; may be nil
	Answers       *answers.Answers            // keeps the state of the credentials; nil: it is not kept
	Room          *room.Room                  // on the disk of StateDir
	NoPassthrough bool
	ReadOnly      bool // even if the workspace itself allows changes
	Copy          CopyOptions
	Now           func() time.Time
	Pulled        func(file string) // told of files that a pull brought; may be nil
}

// CopyOptions are the settings of working copies beside their manifest.
type CopyOptions struct {
	WriteBack bool         // closes of a canonical store return early, where the host grants it
	CacheSize int64        // bytes of clean content; 0: as much as the disk has room for
	KeepFree  int64        // bytes of the disk that content leaves free; 0: cache's default
	TotalSize int64        // of all mounts of the state directory; 0: as CacheSize
	Owner     *cache.Owner // of entries of unknown owner; nil: this process
	MapIDs    bool         // owners are read from the store and written to it
	Umask     uint32       // for entries without a mode
	// Patience is how long a close waits for a store that does not answer; 0:
	// cache's default.
	Patience time.Duration

	// Received counts the bytes that services send; nil: they are not counted.
	Received *progress.Received

	// Fetches is the budget that all parts of a mount share; Start makes it.
	Fetches *cache.FetchBudget
	// Secrets are the secrets that were revealed to any part, which no commit
	// takes; Start makes it too.
	Secrets *cache.Secrets
}

// totalName is the file in the shared directory in which mounts write their size of clean content.
const totalName = "clean"

// opens makes the volume of a resolved workspace.
type opens func(ctx context.Context, r *host.Resolved, e Env) (fs.Volume, error)

// directories are the providers whose store is a local directory, which is served in
// place. Every provider of the registry gets a working copy.
var directories = []string{mountspec.ProviderLocalFS, mountspec.ProviderDevLocal}

// Mountable reports whether this wsmount can mount a storage provider: the
// registry has it, or it is a local directory.
func Mountable(provider string) bool { return slices.Contains(mountable(), provider) }

// MountableProviders lists the providers that Mountable accepts.
func MountableProviders() []string { return slices.Clone(mountable()) }

// mountable is computed once: it is called for each of thousands of manifests.
var mountable = sync.OnceValue(func() []string {
	return slices.Sorted(slices.Values(slices.Concat(directories, all.Registry().Names())))
})

// opener finds the function that opens the volume of a workspace, and whether the
// volume is a working copy, which needs a state directory.
func opener(r *host.Resolved) (open opens, cached bool, err error) {
	switch provider := r.Storage.Provider; {
	case !Mountable(provider):
		return nil, false, exit.New(exit.Unresolvable, "%s: %s: provider %q is not built into this wsmount",
			r.Address, host.CodeProvider, provider).Hint("it can mount: %v", MountableProviders())
	case slices.Contains(directories, provider):
		return openDirect, false, nil
	}
	return openCached, true, nil
}

// Refuses returns why a resolved workspace cannot be mounted as its manifest stands, or nil.
func Refuses(r *host.Resolved) error {
	_, cached, err := opener(r)
	if err == nil && cached {
		err = checkCached(r, false)
	}
	return err
}

// openDirect serves a directory in place. With sync mode watch, changes by
// others are noticed at once; without it, within a second.
func openDirect(ctx context.Context, r *host.Resolved, e Env) (fs.Volume, error) {
	v, err := direct.Open(ctx, r.Local.Path, direct.Options{Log: e.Log, NoPassthrough: e.NoPassthrough,
		Watch: r.Storage.Sync.Mode == mountspec.ModeWatch, Provider: r.Storage.Provider, Dev: r.Local.Dev, Ino: r.Local.Ino})
	if err != nil {
		return nil, exit.New(exit.Failed, "%s: %w", r.Address, err).Hint("check that %s is a directory that you may read", r.Local.Path)
	}
	return v, nil
}

const (
	// answerTime is how long a store may take to answer for the first time.
	answerTime = 30 * time.Second
	// cloneTime is the same for a store that is cloned before it answers.
	cloneTime = 30 * time.Minute
)

// openTime is the time that the store of a workspace may take to open.
func openTime(r *host.Resolved) time.Duration {
	if r.Location.Service == host.ServiceGit {
		return cloneTime
	}
	return answerTime
}

// excluded is the set of paths that stay local: the manifest's exclude and, in a
// repository, git's own directory, which no commit can have.
func excluded(r *host.Resolved) (*mountspec.ExcludeSet, error) {
	patterns := slices.Clone(r.Storage.Exclude)
	if r.Location.Service == host.ServiceGit {
		patterns = append(patterns, "**/.git")
	}
	return mountspec.CompileExclude(patterns)
}

// openProvider opens the store of a resolved workspace. Its error is a mount's.
func openProvider(ctx context.Context, r *host.Resolved, e Env) (p providers.Provider, name string, err error) {
	driver, err := all.Registry().Select(r.Storage.Provider, providers.Capabilities{})
	if err != nil {
		return nil, "", exit.New(exit.Unresolvable, "%s: %w", r.Address, err).Hint("choose a provider that this wsmount has: `wsmount version` lists them")
	}
	set, err := settingsOf(r, e)
	if err != nil {
		return nil, "", exit.New(exit.Denied, "%s: %w", r.Address, err).Hint("`wsmount resolve %s --explain` says what the host grants it", r.Address)
	}
	asked := &atomic.Bool{}
	set.Credentials = noting(asked, e, set.Credentials)
	if e.Ended != nil {
		set.Ended = func(work string, err error) { e.Ended(cache.Activity(work), err) }
	}
	if p, err = driver.Open(ctx, set); err != nil {
		return nil, "", backendError(r, err)
	}
	if commits := r.Location.Service == host.ServiceGit && !set.ReadOnly; commits && e.Copy.Secrets != nil && set.Credentials != nil && !asked.Load() {
		go reveal(set, e.Copy.Secrets.Expect())
	}
	return p, driver.Name, nil
}

// noting wraps reveal: it sets asked, and reports the outcome to e.Ended and e.Answers.
func noting(asked *atomic.Bool, e Env, reveal func(context.Context) (map[string]string, error)) func(context.Context) (map[string]string, error) {
	if reveal == nil {
		return nil
	}
	return func(ctx context.Context) (map[string]string, error) {
		asked.Store(true)
		fields, err := reveal(ctx)
		if e.Ended != nil {
			e.Ended(cache.ActivityCredentials, err)
		}
		if e.Answers != nil {
			expire, _ := time.Parse(time.RFC3339, fields["expiration"]) // the provider refuses an invalid time
			e.Answers.Credentials(expire, err)
		}
		return fields, err
	}
}

// reveal makes the credentials of a clone that exists already known to the secrets guard of
// commits: the first commit may come before the clone's server is asked anything, and waits for
// them. A failure is only logged: it is reported when the credentials are needed.
func reveal(s providers.Settings, done func()) {
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if _, err := s.Credentials(ctx); err != nil && s.Logger != nil {
		s.Logger.Debug("the credentials cannot be had now", "err", err)
	}
}

// OpenStore opens the store of a resolved workspace to read from it. A mount
// would fail with the same error.
func OpenStore(ctx context.Context, r *host.Resolved, e Env) (providers.Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime(r))
	defer cancel()
	p, _, err := openProvider(ctx, r, e)
	return p, err
}

// Store opens the store of a part itself, without a working copy.
func (t *Tree) Store(ctx context.Context, s Source) (seam.Backend, error) {
	if local := s.resolved.Local; local != nil && !s.Cached {
		return all.GrantedDirectory(local.Path, local.Dev, local.Ino)
	}
	p, _, err := openProvider(ctx, s.resolved, Env{Host: t.host, ReadOnly: s.ReadOnly != "", Copy: CopyOptions{Secrets: &cache.Secrets{}}})
	if err != nil {
		return nil, err
	}
	return seam.New(p), nil
}

// openCached opens a working copy of a provider's content.
func openCached(ctx context.Context, r *host.Resolved, e Env) (fs.Volume, error) {
	exclude, err := excluded(r)
	if err != nil {
		return nil, exit.New(exit.Manifest, "%s: %w", r.Address, err).Hint("correct exclude of its storage, in %s", r.Written())
	}
	ctx, cancel := context.WithTimeout(ctx, openTime(r))
	defer cancel()
	w := &workingCopy{freshness: freshness.New(r.Storage.Sync.Pull.TTL, e.Now), patience: cmp.Or(e.Copy.Patience, cache.DefaultPatience)}
	w.answers = answers.New(e.Now, w.answered)
	e.Ended, e.Answers = w.ended, w.answers
	var p providers.Provider
	var name string
	err = e.Room.WhileFull(func() (err error) {
		p, name, err = openProvider(ctx, r, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.Grants.Daemon && e.Log != nil {
		e.Log.Warn("over git:// nothing is encrypted and the server is not authenticated", "workspace", r.Address.String(), "server", r.Location.Endpoint)
	}
	w.meter, _ = p.(providers.Meter) // not an ability of providers.As: asserted before p is wrapped
	w.cloner, _ = p.(providers.Cloner)
	w.replicas, _ = p.(providers.Replicated)
	w.messages = commits.New(p, providers.WrapOptions{Around: w.answers.Around(p)})
	w.provider = w.messages
	if w.acts, err = openActs(r, e); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	o := cache.Options{StateDir: filepath.Join(e.StateDir, state.CopyName), Provider: name, Policy: policyOf(r, e.Copy.WriteBack),
		ReadOnly: r.ReadOnly.Lasting().On() || e.ReadOnly, Owner: e.Copy.Owner, MapIDs: e.Copy.MapIDs, Umask: e.Copy.Umask,
		CacheSize: e.Copy.CacheSize, TotalSize: e.Copy.TotalSize, TotalFile: filepath.Join(e.SharedDir, totalName), BallastFile: state.Ballast(state.RootOf(e.StateDir)),
		KeepFree: e.Copy.KeepFree, Patience: e.Copy.Patience, Fetches: e.Copy.Fetches, Log: e.Log, Now: e.Now, Pulled: w.pulled(e.Pulled), ListRoot: true,
		Guard: cache.Guard{Secrets: e.Copy.Secrets}}
	if w.pins, err = pins.Load(o.StateDir); err != nil {
		return nil, errors.Join(exit.New(exit.Failed, "%s: %w", r.Address, err).Hint("remove the file: nothing is pinned then"), p.Close())
	}
	o.Lost = clone.LostWhileMounted(e.StateDir)
	o.Pins, w.isBucket = w.pins, slices.Contains([]string{secrets.S3, secrets.Azure, secrets.GCS}, r.Location.Service)
	if r.Location.Service == host.ServiceGit {
		o.IgnoreFile = ".gitignore"
	}
	if syncpolicy.LooksPull(r.Storage.Sync) {
		o.Believed = w.freshness.Believed
	}
	if !exclude.Empty() {
		o.Exclude = exclude
	}
	if r.PolicyVaries(policy.Commit) && r.Storage.Sync.Mode == mountspec.ModePullPush {
		o.Policy.Held = func() bool { return !r.Evaluate(policy.Commit, e.Now(), w.acts.Done()).Allow }
	}
	w.dir, w.readOnly, w.noWait = e.StateDir, o.ReadOnly, o.Policy.NoWait
	err = e.Room.WhileFull(func() (err error) {
		w.Volume, err = cache.Open(ctx, w.provider, o)
		return err
	})
	if err == nil {
		w.opened.Store(w.Volume)
		return w, nil
	}
	p.Close()
	var lacking *providers.CapabilityError
	switch {
	case state.IsFull(err):
		return nil, err
	case errors.Is(err, cache.ErrDamaged):
		return nil, exit.New(exit.Failed, "%s: %w", r.Address, err).Hint("`wsmount recover --scan %s` rebuilds it", e.StateDir)
	case errors.As(err, &lacking):
		return nil, exit.New(exit.Failed, "%s: %w", r.Address, err).Hint("mount it read-only, or keep it elsewhere")
	case errors.Is(err, cache.ErrInUse):
		return nil, exit.New(exit.Failed, "%s: %w: %s", r.Address, err, e.StateDir).Hint("`wsmount status` shows who has it mounted")
	case answers.Kind(err) != answers.Other, errors.Is(err, context.DeadlineExceeded):
		return nil, backendError(r, err)
	}
	return nil, exit.New(exit.Failed, "%s: %w", r.Address, err).
		Hint("what is unsaved in it can still be rebuilt: `wsmount recover --scan %s`", e.StateDir)
}

// openActs opens the counts for the limits of the policy. They belong to the workspace and
// the principal, and all working copies of the two share them.
func openActs(r *host.Resolved, e Env) (*inforce.Acts, error) {
	file := state.Acts(state.RootOf(e.StateDir), r.Address.Owner, r.Address.Slug, r.Principal)
	acts, err := inforce.OpenActs(inforce.ActsOptions{Path: file, Remembered: r.Remembered, Now: e.Now, WhileFull: e.Room.WhileFull})
	if err != nil {
		err = exit.New(exit.Denied, "%s: %w", r.Address, err).Hint("remove the file, if what was done today may be done again")
	}
	return acts, err
}

// backendError explains why a store does not open, and gives advice.
func backendError(r *host.Resolved, err error) error {
	e := adviceOn(r, err)
	if !told.Secrets(e, err) {
		e.What = strings.Replace(e.What, err.Error(), told.Store(r.Location.String(), err), 1)
	}
	return e
}

// checkSecret is the advice for a store that does not accept the credentials.
func checkSecret(workspace string) string {
	return "check the secret that it uses: `wsmount resolve " + workspace + " --explain` names it"
}

func adviceOn(r *host.Resolved, err error) *exit.Error {
	var denied *netguard.DeniedError
	var secret *secrets.Error
	var trust interface{ Advice() string } // the provider's advice about a key or a login
	switch {
	case errors.As(err, &denied):
		return exit.New(exit.Denied, "%s: %w", r.Address, err).Hint("%s", denied.Hint)
	case errors.As(err, &secret):
		return exit.New(exit.Denied, "%s: %w", r.Address, err).Hint("%s", secret.Hint)
	case errors.As(err, &trust) && trust.Advice() != "":
		return exit.New(exit.Denied, "%s: %w", r.Address, err).Hint("%s", trust.Advice())
	case r.Local != nil:
		return exit.New(exit.Failed, "%s: %w", r.Address, err).Hint("check that %s is a directory of yours that you may read and write", r.Local.Path)
	case errors.Is(err, providers.ErrUnsupported):
		return exit.New(exit.Failed, "%s: %w", r.Address, err).Hint("mount it read-only, or keep it at another service")
	case errors.Is(err, providers.ErrInvalid):
		return exit.New(exit.Manifest, "%s: %w", r.Address, err).Hint("check storage.config of its manifest: region, endpoint and bucket")
	case errors.Is(err, providers.ErrNotExist):
		e := exit.New(exit.Unresolvable, "%s: %w", r.Address, err).Hint("create it, or correct storage.config of its manifest")
		if at := r.Location; at.Bucket != "" && at.Service != host.ServiceGit {
			e.What = r.Address.String() + ": bucket " + at.Bucket + " does not exist at " + at.Endpoint
		}
		return e
	case errors.Is(err, providers.ErrUnauthenticated):
		return exit.New(exit.Denied, "%s: %w", r.Address, err).Hint("%s", checkSecret(r.Address.String()))
	case errors.Is(err, providers.ErrPermission):
		return exit.New(exit.Denied, "%s: %w", r.Address, err).Hint("let these credentials list, read, write and delete there")
	case errors.Is(err, context.DeadlineExceeded):
		return exit.New(exit.Unreachable, "%s: %w", r.Address, providers.Kinded(errors.New("no answer in time"), err)).Hint("see that %s can be reached, and try again", r.Location)
	}
	return exit.New(exit.Unreachable, "%s: %w", r.Address, err).Hint("check storage.config of its manifest, and that the store can be reached")
}

// examineTime limits the examination of one source's store.
const examineTime = time.Minute

// IsRemote reports whether the source's store is a network service.
func (s Source) IsRemote() bool { return s.resolved != nil && len(s.resolved.Grants.Endpoints) > 0 }

// Examine opens the store of a source as a mount does, and asks it about itself.
// The mount would fail with the same error.
func (t *Tree) Examine(ctx context.Context, s Source) ([]providers.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	opening, done := context.WithTimeout(ctx, answerTime)
	p, _, err := openProvider(opening, s.resolved, Env{Host: t.host, Log: slog.New(slog.DiscardHandler), Now: time.Now, ReadOnly: s.ReadOnly != ""})
	done()
	if err != nil {
		return nil, err
	}
	defer p.Close()
	e, ok := p.(providers.Examiner)
	if !ok {
		return nil, nil
	}
	return e.Examine(ctx), nil
}
