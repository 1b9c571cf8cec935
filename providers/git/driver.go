package git

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/hub"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

// keys of Settings.Config. base_url is the server, and api_url its API, without which there are
// no pull requests. With app_id and installation_id the credentials are the private key of a
// GitHub App; credentials "none" says that there are none, and for a base_url of git there must
// not be any. For one of ssh, known_hosts lists files as PATH lists directories, and agent is the
// socket of an ssh-agent that may be asked. clone is auto, the default, or one of Options.Clone.
var keys = []string{"known_hosts", "agent", "base_url", "api_url", "app_id", "installation_id", "owner", "repo", "branch", "default_commit_email", "credentials", "clone"}

// Drivers opens repositories under AIP-35's name for them. With Settings.StateDir
// they are cloned there; without, nothing is cloned, and the provider answers
// Examine alone.
func Drivers() []providers.Driver {
	return []providers.Driver{{
		Name: "github", Text: "a branch of a git repository, at GitHub or another server", Promises: capabilities(), Keys: slices.Clone(keys),
		Open: func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
			p, err := openSettings(ctx, s)
			if space.IsFull(err) { // of this machine: no error of the service
				return nil, fmt.Errorf("open the clone: %w", err)
			}
			if err != nil {
				return nil, fail(ctx, providers.MethodOpen, providers.Locator{}, err)
			}
			return p, nil
		},
		Archive: func(_ context.Context, s providers.Settings) (providers.Archive, error) {
			return openArchive(s.StateDir, s.Held)
		},
	}}
}

const publicServer = "https://github.com"

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func openSettings(ctx context.Context, s providers.Settings) (providers.Provider, error) {
	if err := s.CheckKeys(keys...); err != nil {
		return nil, err
	}
	where, err := repositoryURL(s.Config)
	if err != nil {
		return nil, err
	}
	o := Options{URL: where, Dir: s.StateDir, Shared: s.SharedDir, Branch: s.Config["branch"], Credentials: s.Credentials, Transport: s.Transport,
		Email: s.Config["default_commit_email"], Now: s.Now, MakeRoom: s.MakeRoom, Receiving: s.Receiving,
		SSH: SSH{KnownHosts: filepath.SplitList(s.Config["known_hosts"]), Agent: s.Config["agent"], Dial: s.Dial}, Daemon: Daemon{Dial: s.Dial}}
	switch s.Config["credentials"] {
	case "":
	case "none":
		o.Credentials = nil
	default:
		return nil, fmt.Errorf("credentials %q (want none, or nothing): %w", s.Config["credentials"], providers.ErrInvalid)
	}
	switch o.Clone = s.Config["clone"]; o.Clone {
	case "auto":
		o.Clone = CloneAuto
	case CloneAuto, CloneBlobless, CloneFull:
	default:
		return nil, fmt.Errorf("clone %q (want auto, full or blobless): %w", o.Clone, providers.ErrInvalid)
	}
	if err := withAPI(&o, s); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		return openExaminer(ctx, o)
	}
	p, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// withAPI adds the features that need the server's API.
func withAPI(o *Options, s providers.Settings) error {
	api, err := serverURL("api_url", s.Config["api_url"], false)
	if err != nil || s.Config["api_url"] == "" && s.Config["app_id"] == "" {
		return err
	}
	if s.Config["app_id"] != "" {
		app := &hub.App{URL: api, Repo: s.Config["repo"], Key: o.Credentials, Transport: s.Transport, Now: s.Now}
		for key, to := range map[string]*int64{"app_id": &app.ID, "installation_id": &app.Installation} {
			if *to, err = strconv.ParseInt(s.Config[key], 10, 64); err != nil || *to <= 0 {
				return fmt.Errorf("%s %q: %w", key, s.Config[key], providers.ErrInvalid)
			}
		}
		if api == "" || o.Credentials == nil {
			return fmt.Errorf("a GitHub App needs api_url and its private key: %w", providers.ErrInvalid)
		}
		o.Credentials, o.Refused = telling(app.Credentials, s.Minted), app.Forget
	}
	o.Pulls = hub.New(hub.Options{URL: api, Owner: s.Config["owner"], Repo: s.Config["repo"], Credentials: o.Credentials, Transport: s.Transport})
	return nil
}

// telling calls told with each token that is minted.
func telling(mint func(context.Context) (map[string]string, error), told func(string)) func(context.Context) (map[string]string, error) {
	if told == nil {
		return mint
	}
	return func(ctx context.Context) (map[string]string, error) {
		fields, err := mint(ctx)
		if err == nil {
			told(fields["token"])
		}
		return fields, err
	}
}

// serverURL checks the URL of a server. otherwise: it may be one of SSH or git
// too.
func serverURL(key, text string, otherwise bool) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // the error would show all of it
		return "", fmt.Errorf("%s is not a URL: %w", key, providers.ErrInvalid)
	case otherwise && u.Scheme == "git":
		if u.User != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return "", fmt.Errorf("%s must be like git://git.acme.test, without user, query or fragment: %w", key, providers.ErrInvalid)
		}
	case otherwise && u.Scheme == "ssh":
		if _, password := u.User.Password(); password || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return "", fmt.Errorf("%s must be like ssh://git@git.acme.test, without password, query or fragment: %w", key, providers.ErrInvalid)
		}
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("%s must be an http or https URL without user, query or fragment: %w", key, providers.ErrInvalid)
	}
	return strings.TrimRight(text, "/"), nil
}

// repositoryURL is where a repository is asked for.
func repositoryURL(config map[string]string) (string, error) {
	base, err := serverURL("base_url", orDefault(config["base_url"], publicServer), true)
	if err != nil {
		return "", err
	}
	for _, key := range []string{"owner", "repo"} {
		if part := config[key]; part == "" || strings.ContainsAny(part, "/?#%\\ ") || part == "." || part == ".." {
			return "", fmt.Errorf("%s %q: %w", key, part, providers.ErrInvalid)
		}
	}
	return base + "/" + config["owner"] + "/" + config["repo"] + ".git", nil
}
