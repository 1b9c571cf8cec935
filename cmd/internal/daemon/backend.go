package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
)

// headerTime is how long a service may take to begin its answer after it has received a request.
const headerTime = 60 * time.Second

// settingsOf are the settings of a provider: the manifest's config, the host's
// settings for its own service, the granted credentials, and the only way to the
// network, which reaches only granted endpoints.
func settingsOf(r *host.Resolved, e Env) (providers.Settings, error) {
	s := providers.Settings{Config: settings(r.Storage.Config), Logger: e.Log, Now: e.Now, ReadOnly: r.ReadOnly.Lasting().On() || e.ReadOnly}
	if r.Storage.Provider == mountspec.ProviderVault {
		s.Config["vault_path"], s.Config["granted"] = r.Local.Path, fmt.Sprintf("%d:%d", r.Local.Dev, r.Local.Ino)
	}
	if e.StateDir != "" {
		s.StateDir = filepath.Join(e.StateDir, r.Location.Service)
		s.SharedDir = filepath.Join(e.SharedDir, r.Location.Service)
		if e.Room != nil {
			s.MakeRoom = e.Room.MakeRoom
		}
	}
	if len(r.Grants.Endpoints) == 0 {
		return s, nil
	}
	guard, err := e.Host.Guard(r)
	if err != nil {
		return s, err
	}
	s.Minted = func(token string) { e.Copy.Secrets.Add("minted for "+r.Storage.Provider, token) }
	s.Transport = errDenied{guard.Transport(netguard.TransportOptions{ResponseHeaderTimeout: headerTime})}
	if e.Copy.Received != nil {
		s.Transport, s.Receiving = e.Copy.Received.HTTP(s.Transport), e.Copy.Received.Objects
	}
	if r.Storage.Provider == mountspec.ProviderCloudBucket {
		return hostBucket(s, r, e)
	}
	if r.Location.Service == host.ServiceGit {
		s.Config["base_url"] = r.Location.Endpoint
		put(s.Config, "api_url", r.Grants.API)
		put(s.Config, "clone", r.Grants.Clone)
	}
	if r.Grants.Daemon {
		s.Dial, s.Config["credentials"] = e.dial(guard), "none"
		return s, nil
	}
	if r.Grants.SSH != nil {
		return hostSSH(s, r, e, guard), nil
	}
	if r.Grants.App != nil {
		return hostApp(s, r, e), nil
	}
	s.Config["credentials"] = "none"
	if r.Grants.Secrets != nil {
		s.Config["credentials"] = ""
		s.Credentials = planned(r, e)
	}
	return s, nil
}

// planned are the credentials that the manifest names.
func planned(r *host.Resolved, e Env) func(context.Context) (map[string]string, error) {
	return revealed(e.Copy.Secrets, namesOf(r.Grants.Secrets), func(ctx context.Context) (secrets.Secret, error) {
		c, err := r.Grants.Secrets.Reveal(ctx)
		if err != nil {
			return secrets.Secret{}, err
		}
		return c.Secret(), nil
	})
}

// hostBucket adds the host's settings for its own bucket service.
func hostBucket(s providers.Settings, r *host.Resolved, e Env) (providers.Settings, error) {
	b, ok := e.Host.CloudBucket()
	if !ok {
		return s, errors.New("the host has no bucket service")
	}
	put(s.Config, "kind", b.Kind)
	put(s.Config, "endpoint", b.Endpoint)
	put(s.Config, "region", b.Region)
	switch b.Credentials {
	case "", "sdk":
		s.Config["credentials"] = map[string]string{"": "none", "sdk": "sdk"}[b.Credentials]
	default:
		s.Credentials = revealed(e.Copy.Secrets, b.Credentials, func(ctx context.Context) (secrets.Secret, error) {
			return e.Host.Vault().Host(ctx, b.Credentials, r.Address, "storage "+r.Storage.Provider)
		})
	}
	return s, nil
}

// hostApp adds the host's GitHub App, whose key is revealed when a token is minted.
func hostApp(s providers.Settings, r *host.Resolved, e Env) providers.Settings {
	s.Config["app_id"] = strconv.FormatInt(r.Grants.App.ID, 10)
	s.Config["installation_id"] = strconv.FormatInt(r.Grants.Installation, 10)
	s.Credentials = revealed(e.Copy.Secrets, r.Grants.App.Key, func(ctx context.Context) (secrets.Secret, error) {
		return e.Host.Vault().Host(ctx, r.Grants.App.Key, r.Address, "the GitHub App's key")
	})
	return s
}

// revealed returns the function by which a provider gets credentials: all fields of one moment, so
// that halves of two never go together. Commits refuse the secret fields.
func revealed(guarded *cache.Secrets, name string, reveal func(context.Context) (secrets.Secret, error)) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		s, err := reveal(ctx)
		if err != nil {
			return nil, err // the provider adds that these are its credentials
		}
		fields := map[string]string{}
		for _, field := range s.Names() {
			v, _ := s.Field(field)
			fields[field] = v.Reveal()
			if !slices.Contains(public, field) {
				guarded.Add(name, fields[field])
			}
		}
		if !s.Expires.IsZero() {
			fields["expiration"] = s.Expires.Format(time.RFC3339)
		}
		return fields, nil
	}
}

// public are the fields that identify an account and do not authenticate it, also those of a
// service account's key file: its "type" occurs in many commits.
var public = []string{
	"username", "access_key_id", "account_name", "type", "project_id", "private_key_id", "client_email", "client_id", "auth_uri", "token_uri",
	"auth_provider_x509_cert_url", "client_x509_cert_url", "universe_domain",
}

// namesOf joins the host's names of the secrets of a plan.
func namesOf(p *secrets.Plan) string {
	var names []string
	for _, n := range p.Needs() {
		names = append(names, n.Name)
	}
	return strings.Join(names, " or ")
}

// errDenied gives a refusal of the guard an error kind that is not retried.
type errDenied struct{ http.RoundTripper }

func (t errDenied) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if errors.Is(err, netguard.ErrDenied) {
		err = fmt.Errorf("%w: %w", providers.ErrPermission, err)
	}
	return resp, err
}

// settings are the scalars of a config, by the names that providers use.
func settings(c mountspec.Config) map[string]string {
	out := map[string]string{}
	switch x := c.(type) {
	case mountspec.RawConfig:
		for k, v := range x.Values {
			out[k] = fmt.Sprint(v)
		}
	case mountspec.CloudBucketConfig:
		put(out, "bucket", x.Bucket)
		put(out, "prefix", x.Prefix)
	case mountspec.SelfBucketConfig:
		put(out, "kind", string(x.Kind))
		put(out, "endpoint", x.Endpoint)
		put(out, "region", x.Region)
		put(out, "bucket", x.Bucket)
		put(out, "prefix", x.Prefix)
	case mountspec.MastraS3Config:
		put(out, "endpoint", x.Endpoint)
		put(out, "region", x.Region)
		put(out, "bucket", x.Bucket)
		put(out, "prefix", x.Prefix)
		if x.ForcePathStyle != nil {
			out["path_style"] = strconv.FormatBool(*x.ForcePathStyle)
		}
	case mountspec.MastraAzureConfig:
		put(out, "endpoint", x.Endpoint)
		put(out, "account_name", x.AccountName)
		put(out, "bucket", x.Container)
		put(out, "prefix", x.Prefix)
		if x.UseDefaultCredential {
			out["useDefaultCredential"] = "true"
		}
	case mountspec.GitHubConfig:
		put(out, "owner", x.Owner)
		put(out, "repo", x.Repo)
		put(out, "branch", x.Branch)
		put(out, "default_commit_email", x.DefaultCommitEmail)
	}
	return out
}

func put(config map[string]string, key, value string) {
	if value != "" {
		config[key] = value
	}
}
