package git

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// keys of Settings.Config. base_url is the server; credentials "none" says that
// there are none.
var keys = []string{"base_url", "owner", "repo", "branch", "default_commit_email", "credentials"}

// Drivers opens repositories under AIP-35's name for them. With Settings.StateDir
// they are cloned there; without, nothing is cloned, and the provider answers
// Examine alone.
func Drivers() []providers.Driver {
	return []providers.Driver{{
		Name: "github", Text: "a branch of a git repository, at GitHub or another server", Promises: capabilities(), Keys: slices.Clone(keys),
		Open: func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
			p, err := openSettings(ctx, s)
			if err != nil {
				return nil, fail(ctx, providers.MethodOpen, providers.Locator{}, err)
			}
			return p, nil
		},
	}}
}

const publicServer = "https://github.com"

func openSettings(ctx context.Context, s providers.Settings) (providers.Provider, error) {
	if err := s.CheckKeys(keys...); err != nil {
		return nil, err
	}
	where, err := repositoryURL(s.Config)
	if err != nil {
		return nil, err
	}
	o := Options{URL: where, Dir: s.StateDir, Branch: s.Config["branch"], Credentials: s.Credentials, Transport: s.Transport,
		Email: s.Config["default_commit_email"], Now: s.Now}
	switch s.Config["credentials"] {
	case "":
	case "none":
		o.Credentials = nil
	default:
		return nil, fmt.Errorf("credentials %q (want none, or nothing): %w", s.Config["credentials"], providers.ErrInvalid)
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

// repositoryURL is where a repository is asked for.
func repositoryURL(config map[string]string) (string, error) {
	base := config["base_url"]
	if base == "" {
		base = publicServer
	}
	u, err := url.Parse(base)
	switch {
	case err != nil: // the error would show all of it
		return "", fmt.Errorf("base_url is not a URL: %w", providers.ErrInvalid)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("base_url must be an http or https URL without user, query or fragment: %w", providers.ErrInvalid)
	}
	for _, key := range []string{"owner", "repo"} {
		if part := config[key]; part == "" || strings.ContainsAny(part, "/?#%\\ ") || part == "." || part == ".." {
			return "", fmt.Errorf("%s %q: %w", key, part, providers.ErrInvalid)
		}
	}
	return strings.TrimRight(base, "/") + "/" + config["owner"] + "/" + config["repo"] + ".git", nil
}
