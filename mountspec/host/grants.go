package host

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/registry"
)

// A granter decides on the host's grants to a workspace after its manifests were read.
type granter struct {
	*trail
	r     *Resolver
	reg   *registry.File
	named []string // slugs and environment names granted on the command line
}

// deny records a refusal of something that only the host can grant.
func (r *Resolver) deny(l *loaded, code string, pos mountspec.Pos, hint, format string, args ...any) error {
	e := denied(code, pos.String(), hint, format, args...)
	if err := r.o.Audit.Write(audit.Denied{Workspace: l.ws.ID.String(), What: l.storage.Provider, Reason: e.What}); err != nil {
		e.What += "; the audit log cannot be written: " + err.Error()
	}
	return e
}

// authorize checks, for each kind of storage, the grants that it needs of the host.
func (h *granter) authorize(l *loaded) (Grants, error) {
	var g Grants
	if l.local != nil {
		if _, is := l.storage.Config.(mountspec.VaultConfig); is {
			g.WriteBack = h.grantWriteBack(l) // it has a working copy
		}
		return g, h.grantLocal(l)
	}
	var err error
	switch l.storage.Config.(type) {
	case mountspec.CloudBucketConfig:
		err = h.grantCloudBucket(l, &g)
	case mountspec.GitHubConfig:
		err = h.grantGitHub(l, &g)
	case mountspec.RawConfig:
		err = h.grantRaw(l)
	default:
		err = h.grantEndpoint(l, &g)
	}
	if err != nil {
		return g, err
	}
	g.Proxy = h.proxy(l)
	g.WriteBack = h.grantWriteBack(l)
	return g, h.grantSecrets(l, &g)
}

// grantRaw is for a provider that only the host knows. Its key socket is a Unix
// socket of this machine, and a volume with it has access to the service behind it:
// it is granted like a directory.
func (h *granter) grantRaw(l *loaded) error {
	if l.cand.trust == Unverified {
		return h.r.deny(l, "", l.storage.ConfigPos, "register the manifest", "a provider of the host is for registered manifests only")
	}
	value, there := l.storage.Config.(mountspec.RawConfig).Values["socket"]
	if !there {
		return nil
	}
	socket, ok := value.(string)
	if !ok || !filepath.IsAbs(socket) {
		return unresolvable(CodeStorageCfg, l.storage.ConfigPos.String(), "write the absolute path of a Unix socket", "socket is %v", value)
	}
	if socket = location.Real(socket); grant.Below(l.home.root, socket) && l.home.root != "/" {
		h.step("grant", socket+" is below the workspace's own directory")
		return nil
	}
	root, ok := h.allowedPath(socket)
	if !ok {
		return h.r.deny(l, "", l.storage.ConfigPos, "add "+filepath.Dir(socket)+" to allow_paths of the host configuration",
			"the socket %s is neither below the workspace's own directory nor in allow_paths", socket)
	}
	h.step("grant", "allow_paths "+root)
	return nil
}

func (h *granter) grantSecrets(l *loaded, g *Grants) error {
	req := h.needsSecrets(l)
	if req.CredentialsRef == "" && len(req.Env) == 0 {
		return nil
	}
	plan, err := h.r.vault.Plan(req)
	if err != nil {
		return secretError(orDefault(l.storage.Auth.Pos.String(), l.storage.ConfigPos.String()), err)
	}
	for _, n := range plan.Needs() {
		h.step("secret "+n.Name, n.Source+", granted by "+n.GrantedBy)
	}
	g.Secrets = plan
	return nil
}

func (h *granter) grantCloudBucket(l *loaded, g *Grants) error {
	c := l.storage.Config.(mountspec.CloudBucketConfig)
	b := h.r.cfg.CloudBucket
	pos := l.storage.ConfigPos
	switch {
	case b == nil:
		return h.r.deny(l, "", pos, "configure providers.cloud-bucket, or use self-bucket", "the host has no bucket service")
	case l.cand.trust == Unverified:
		return h.r.deny(l, "", pos, "register the manifest: wsmount registry add "+l.home.root, "the host's bucket is for registered manifests only")
	}
	for _, x := range b.Grants {
		if x.Owner == l.ws.ID.Owner && x.Bucket == c.Bucket && grant.Prefix(x.Prefix, c.Prefix) {
			h.step("grant", fmt.Sprintf("providers.cloud-bucket: %s has %s/%s", x.Owner, x.Bucket, x.Prefix))
			g.HostCredentials = b.Credentials
			g.Endpoints = h.r.cfg.AllowEndpoints.OfBucket(l.loc.Endpoint, l.loc.Service, l.loc.Bucket)
			return nil
		}
	}
	return h.r.deny(l, "", pos, "add a grant to providers.cloud-bucket of the host configuration",
		"%s/%s is not granted to %s", c.Bucket, c.Prefix, l.ws.ID.Owner)
}

// grantGitHub checks the app's installation. Without one the token comes
// from the secrets; without these it is the owner's only installation, and without
// that the repository must be public.
func (h *granter) grantGitHub(l *loaded, g *Grants) error {
	c := l.storage.Config.(mountspec.GitHubConfig)
	gh := h.r.cfg.GitHub
	g.Clone = gh.Clone
	if overGit(gh.BaseURL) {
		return h.grantDaemon(l, g)
	}
	g.Endpoints = h.gitHubEndpoints(l, gh)
	if g.API = gh.APIURL; g.API == "" && orDefault(gh.BaseURL, endpoint.PublicGitHub) == endpoint.PublicGitHub {
		g.API = endpoint.PublicGitHubAPI
	}
	app, pos := gh.App, l.storage.ConfigPos
	if overSSH(gh.BaseURL) {
		h.grantSSH(l, g)
		app = nil // its tokens are for https alone
	}
	if c.InstallationID == "" && l.storage.Auth.Ref == "" && len(l.storage.Auth.Env) == 0 && app != nil {
		c.InstallationID = h.onlyInstallation(l, app)
	}
	switch {
	case c.InstallationID == "" || l.cand.trust == Unverified:
		if c.InstallationID != "" {
			h.step("installation "+c.InstallationID, "not used: the manifest is not registered")
		}
		return nil
	case app == nil && len(l.storage.Auth.Env) > 0:
		h.step("installation "+c.InstallationID, "the host has no app; the token comes from auth.state.env")
		return nil
	case app == nil && g.SSH != nil:
		return h.r.deny(l, CodeAuth, pos, "leave installation_id away, or write an https URL as providers.github.base_url of the host configuration",
			"installation %s is for https, and %s is reached over SSH", c.InstallationID, gh.BaseURL)
	case app == nil:
		return h.r.deny(l, CodeAuth, pos, "configure providers.github.app, or name a token in auth.state.env", "the host has no GitHub App")
	}
	id, err := strconv.ParseInt(c.InstallationID, 10, 64)
	if err != nil || !slices.Contains(app.Installations[l.ws.ID.Owner], id) {
		return h.r.deny(l, CodeAuth, pos, "add it to providers.github.app.installations of the host configuration",
			"installation %s is not granted to %s", c.InstallationID, l.ws.ID.Owner)
	}
	g.App, g.Installation = app, id
	h.step("grant", fmt.Sprintf("providers.github.app: %s has installation %d", l.ws.ID.Owner, id))
	return nil
}

// onlyInstallation is the owner's only installation, for a manifest that names neither
// an installation nor a token; "": there is none, or several.
func (h *granter) onlyInstallation(l *loaded, app *GitHubApp) string {
	granted := app.Installations[l.ws.ID.Owner]
	if len(granted) == 1 {
		return strconv.FormatInt(granted[0], 10)
	}
	h.defaulted("installation", fmt.Sprintf("none: %s has %d, and installation_id names none", l.ws.ID.Owner, len(granted)))
	return ""
}

// gitHubLFS are the services that LFS answers of the public GitHub lead to.
var gitHubLFS = []string{"https://lfs.github.com", "https://github-cloud.githubusercontent.com", "https://github-cloud.s3.amazonaws.com",
	"https://media.githubusercontent.com", "https://objects.githubusercontent.com"}

// gitHubEndpoints are the two services, and the endpoints that LFS answers may lead to: the host's
// own server chooses these, so all endpoints that the host lists are allowed. A manifest that is
// not registered reaches only those of the public GitHub.
func (h *granter) gitHubEndpoints(l *loaded, gh GitHub) []string {
	base, api := orDefault(gh.BaseURL, endpoint.PublicGitHub), orDefault(gh.APIURL, endpoint.PublicGitHubAPI)
	out := slices.Concat(h.r.cfg.AllowEndpoints.Of(base), h.r.cfg.AllowEndpoints.Of(api))
	if endpoint.IsPublicGitHub(base) {
		out = append(out, gitHubLFS...)
	}
	if l.cand.trust == Unverified {
		return out
	}
	for _, pattern := range h.r.cfg.AllowEndpoints {
		if strings.HasPrefix(pattern, "http") && !slices.Contains(out, pattern) {
			h.step("grant", "LFS objects from allow_endpoints "+pattern)
			out = append(out, pattern)
		}
	}
	return out
}

// grantEndpoint checks the endpoint of the owner's own bucket: on the host's list,
// the public endpoint of a known service, or, for a manifest that is not
// registered, any public name, to read from.
func (h *granter) grantEndpoint(l *loaded, g *Grants) error {
	pos, asked := l.storage.ConfigPos, l.loc.Endpoint
	u, err := url.Parse(asked)
	if err != nil || u.Host == "" {
		return unresolvable(CodeStorageCfg, pos.String(), "add endpoint to the config", "the storage has no endpoint")
	}
	switch {
	case l.cand.trust == Unverified:
		if u.Scheme != "https" || !endpoint.IsPublicName(u.Hostname()) {
			return h.r.deny(l, "", pos, "register the manifest, and list the endpoint in allow_endpoints",
				"a manifest that is not registered reaches public https names only, not %s", endpoint.Origin(u))
		}
		h.step("grant", endpoint.Origin(u)+" is public, read-only, "+l.cand.trust.String())
	case h.r.cfg.AllowEndpoints.Has(asked):
		h.step("grant", "allow_endpoints "+endpoint.Origin(u))
	case endpoint.IsOwn(u, l.loc.Service):
		h.step("grant", endpoint.Origin(u)+" is the service's own endpoint")
	default:
		return h.r.deny(l, "", pos, fmt.Sprintf("add %q to allow_endpoints of the host configuration", endpoint.Origin(u)),
			"the endpoint %s is not granted", endpoint.Origin(u))
	}
	g.Endpoints = h.r.cfg.AllowEndpoints.OfBucket(asked, l.loc.Service, l.loc.Bucket)
	return nil
}

// proxy is the host's own, if allow_env lists its variable for all workspaces or for this one.
func (h *granter) proxy(l *loaded) string {
	for _, e := range h.r.cfg.AllowEnv {
		if e.Name != "HTTPS_PROXY" && e.Name != "HTTP_PROXY" || l.cand.trust == Unverified {
			continue
		}
		if _, ok := grant.MatchesAny(e.Allow, l.ws.ID.Owner, l.ws.ID.Slug); !ok && e.Allow != nil {
			continue
		}
		if v, ok := h.r.o.Lookup(e.Name); ok && v != "" {
			h.step("proxy", e.Name+", granted by allow_env")
			return v
		}
	}
	return ""
}

func (h *granter) grantWriteBack(l *loaded) bool {
	_, ok := grant.MatchesAny(h.r.cfg.AllowWriteBack, l.ws.ID.Owner, l.ws.ID.Slug)
	return ok && l.cand.trust != Unverified
}
