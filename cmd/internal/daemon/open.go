package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
)

// An Env is what a volume is opened in.
type Env struct {
	Log           *slog.Logger
	StateDir      string // of this part, locked; only for a Source that is Cached
	NoPassthrough bool
}

// opens makes the volume of a resolved workspace.
type opens func(ctx context.Context, r *host.Resolved, e Env) (fs.Volume, error)

// directories are the providers whose store is a local directory: it is served
// in place. Every other provider of the registry gets a working copy.
var directories = []string{mountspec.ProviderLocalFS, mountspec.ProviderDevLocal}

// Mountable reports whether this wsmount can mount a storage provider: the
// registry has it.
func Mountable(provider string) bool {
	_, registered := all.Registry().Get(provider)
	return registered
}

// MountableProviders lists what Mountable accepts.
func MountableProviders() []string {
	names := all.Registry().Names()
	slices.Sort(names)
	return names
}

// opener finds what opens the volume of a workspace, and whether that is a
// working copy, which needs a state directory.
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

// openCached serves a working copy of what a provider holds.
func openCached(ctx context.Context, r *host.Resolved, e Env) (fs.Volume, error) {
	driver, err := all.Registry().Select(r.Storage.Provider, providers.Capabilities{})
	if err != nil {
		return nil, exit.New(exit.Unresolvable, "%s: %w", r.Address, err)
	}
	p, err := driver.Open(ctx, providers.Settings{Config: settings(r.Storage.Config), Logger: e.Log})
	if err != nil {
		return nil, exit.New(exit.Unreachable, "%s: %w", r.Address, err).Hint("check storage.config of its manifest")
	}
	v, err := cache.Open(ctx, p, cache.Options{StateDir: filepath.Join(e.StateDir, "content"), Provider: driver.Name, Log: e.Log})
	if err != nil {
		p.Close()
	}
	if errors.Is(err, cache.ErrLeftovers) {
		return nil, exit.New(exit.Unsafe, "%s: %w: %s", r.Address, err, e.StateDir).
			Hint("its files may be the only copy: look at them, and move the directory away")
	}
	if err != nil {
		return nil, exit.New(exit.Failed, "%s: %w", r.Address, err).Hint("see %s", e.StateDir)
	}
	return v, nil
}

// settings are the scalars of a config that only its provider understands.
func settings(c mountspec.Config) map[string]string {
	out := map[string]string{}
	if raw, ok := c.(mountspec.RawConfig); ok {
		for k, v := range raw.Values {
			out[k] = fmt.Sprint(v)
		}
	}
	return out
}
