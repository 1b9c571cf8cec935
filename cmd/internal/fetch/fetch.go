// Package fetch reads the manifests of a workspace where its files are: out of the same
// store, opened with the same grants, as a mount of it. It changes nothing in the store, and
// keeps nothing locally but objects of a repository, which the mount then need not request.
//
//	resolver, err := host.NewResolver(host.Options{Open: fetch.In(stateRoot)})
package fetch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/giturl"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/providers"
)

// Where is how a person says where a workspace lies.
type Where struct {
	Place                  string // as origin.ParsePlace reads it
	URL                    string // of a repository at the host's git server, instead
	Endpoint, Region, Auth string // as in origin.Origin
}

// Origin reads it. server is the git server of the host configuration; empty: the public
// GitHub.
func (w Where) Origin(server string) (o origin.Origin, err error) {
	o = origin.Origin{Endpoint: w.Endpoint, Region: w.Region, Auth: w.Auth}
	if w.URL == "" {
		if o.Place, err = origin.ParsePlace(w.Place); err != nil {
			return o, exit.New(exit.Usage, "%w", err).Hint("%s", origin.PlaceHint)
		}
		return o, nil
	}
	if o.Place, err = origin.AtServer(cmp.Or(server, endpoint.PublicGitHub), w.URL); err != nil {
		return o, exit.New(exit.Usage, "the URL of the repository: %w", err).Hint("name the server as providers.github.base_url of the host configuration; %s", giturl.Hint)
	}
	return o, nil
}

// In opens the stores of workspaces; a repository has its clone below a state directory
// meanwhile.
func In(root string) func(context.Context, *host.Resolver, *host.Resolved) (origin.Source, error) {
	return func(ctx context.Context, r *host.Resolver, at *host.Resolved) (origin.Source, error) {
		s := &store{release: func() {}}
		e := daemon.Env{Host: r, Log: slog.New(slog.DiscardHandler), Now: time.Now, ReadOnly: true}
		if at.Location.Service == host.ServiceGit {
			if root == "" {
				return nil, exit.New(exit.Usage, "no state directory for a clone: HOME is not set").Hint("give --state-dir DIR")
			}
			var err error
			if e.StateDir, s.release, err = scratch(state.Shared(root)); err != nil {
				return nil, exit.New(exit.Failed, "state directory: %w", err).Hint("give --state-dir a directory that you may write")
			}
			e.SharedDir = state.Shared(root)
			at.Grants.Clone = cmp.Or(at.Grants.Clone, "blobless") // a few files are needed
		}
		var err error
		if s.provider, err = daemon.OpenStore(ctx, at, e); err != nil {
			s.release()
			if e := exit.From(err); e.Code == exit.Unresolvable { // no manifest to correct exists yet
				err = e.Hint("correct the place; one that must not be seen without credentials needs them: --auth NAME")
			}
			return nil, err
		}
		return s, nil
	}
}

// store is a provider as a source.
type store struct {
	provider providers.Provider
	release  func()
}

var _ origin.Source = (*store)(nil)

// Read implements origin.Source.
func (s *store) Read(ctx context.Context, name string, most int64) ([]byte, error) {
	l, err := providers.ParseLocator(name)
	if err != nil {
		return nil, err
	}
	c, err := providers.Stream(ctx, s.provider, l, providers.ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer c.Body.Close()
	if c.Info.Kind != providers.KindFile {
		return nil, fmt.Errorf("%s is a %s, and only a file is read", name, c.Info.Kind)
	}
	data, err := io.ReadAll(io.LimitReader(c.Body, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return data, err
}

// Dirs implements origin.Source.
func (s *store) Dirs(ctx context.Context, name string, most int) (dirs []string, err error) {
	l, err := providers.ParseLocator(name)
	if err != nil {
		return nil, err
	}
	for page := (providers.Page{}); ; {
		if page, err = s.provider.List(ctx, l, providers.ListOptions{Token: page.Next}); err != nil {
			return nil, err
		}
		for _, e := range page.Entries {
			if e.Kind == providers.KindDir && len(dirs) < most {
				dirs = append(dirs, e.Locator.Name())
			}
		}
		if page.Next == "" || len(dirs) >= most {
			return dirs, nil
		}
	}
}

// Close implements origin.Source.
func (s *store) Close() {
	s.provider.Close()
	s.release()
}
