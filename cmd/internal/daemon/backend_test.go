package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// What a manifest excludes stays here, and in a repository what is git's own.
func TestExcluded(t *testing.T) {
	for service, git := range map[string]bool{host.ServiceRaw: false, host.ServiceGit: true} {
		set, err := excluded(&host.Resolved{Storage: &mountspec.Storage{Exclude: []string{"*.local"}}, Location: host.Location{Service: service}})
		assert.OK(t, err)
		assert.True(t, set.Match("a.local", false), service, "what the manifest says")
		assert.Equal(t, set.Match("sub/.git", true), git, service)
		assert.False(t, set.Match("a", false), service, "all")
	}
}

// A git daemon gets no credentials, whatever else was granted, and is reached where
// the host says and nowhere else.
func TestSettingsOfAGitDaemon(t *testing.T) {
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	defer l.Close()
	resolver := assert.Of(host.NewResolver(host.Options{Config: &host.Config{}})).OK(t)
	for endpoint, ok := range map[string]bool{"git://" + l.Addr().String(): true, "git://git.acme.test": false} {
		r := &host.Resolved{Storage: &mountspec.Storage{Provider: mountspec.ProviderGitHub, Config: mountspec.GitHubConfig{Owner: "acme", Repo: "site"}},
			Location: host.Location{Service: host.ServiceGit, Endpoint: endpoint},
			Grants:   host.Grants{Daemon: true, Endpoints: []string{endpoint}, Secrets: &secrets.Plan{}, App: &host.GitHubApp{}, SSH: &host.SSHGrant{Secret: "key"}}}
		s, err := settingsOf(r, Env{Host: resolver})
		assert.Must(t, err == nil && s.Credentials == nil && s.Config["credentials"] == "none" && s.Config["base_url"] == endpoint && s.Dial != nil, endpoint, s, err)
		conn, err := s.Dial(t.Context(), "git://"+l.Addr().String())
		if conn != nil {
			conn.Close()
		}
		assert.True(t, (err == nil) == ok && errors.Is(err, netguard.ErrDenied) != ok, endpoint, "dialled", err)
	}
}

// What the daemon refuses and no other test is about, each by its words.
func TestRefusals(t *testing.T) {
	git := func(change func(r *host.Resolved)) error {
		r := &host.Resolved{Storage: &mountspec.Storage{Provider: mountspec.ProviderGitHub, Config: mountspec.GitHubConfig{Owner: "acme", Repo: "site"}},
			Location: host.Location{Service: host.ServiceGit, Endpoint: "https://git.acme.test"}}
		change(r)
		return checkGit(r)
	}
	for says, err := range map[string]error{
		"a GitHub App needs the API of https://git.acme.test": git(func(r *host.Resolved) { r.Grants.App = &host.GitHubApp{} }),
		"commits have no author":                              git(func(*host.Resolved) {}),
		"operator://current, the author of commits, has no name and e-mail address": git(func(r *host.Resolved) {
			r.Identity = []mountspec.IdentityEntry{{Ref: mountspec.CurrentOperator}}
		}),
		"larger than the history may be": refusal(fmt.Errorf("f: %w", cache.ErrTooLarge)),
		"no answer in time":              backendError(&host.Resolved{}, context.DeadlineExceeded),
		"unknown verb \"x\"":             assert.ErrOf((&copies{}).Sync(t.Context(), control.SyncRequest{Verb: "x"})),
		"unknown side \"x\"":             assert.ErrOf((&copies{}).ConflictContent(t.Context(), "f", "x")),
		"\"x\" cannot be kept":           assert.ErrOf((&copies{}).Resolve(t.Context(), control.ResolveRequest{Keep: "x"}, nil)),
	} {
		var e *exit.Error
		assert.True(t, errors.As(err, &e) && strings.Contains(e.What, says) && !strings.Contains(e.What, "context deadline exceeded") && e.Advice != "", says, err)
	}
}
