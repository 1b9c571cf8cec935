// Package setup declares a workspace whose files lie at a store that needs grants of the
// host: it asks a person for missing answers, tries the store, and writes the manifests and
// the lines that the host configuration needs.
//
//	g := setup.Guide{Options: o, Config: cfg, Ask: setup.NewAsker(os.Stdin, os.Stderr)}
//	plan, notes, err := g.Plan(ctx)
//	undo, err := plan.Write(ctx, true)
//
// It promises that nothing is written before all of it is known to be valid; that no file is
// overwritten but the host configuration, to which lines are added in one step; and that no
// value of a secret is written: only the place where the host keeps it.
package setup

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/manifestfile"
	"github.com/wsmount/wsmount/cmd/internal/person"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/host/configedit"
	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// Options are the known answers about the workspace.
type Options struct {
	Provider    string // one of Providers
	Dir         string // of the manifest, absolute
	ID          mountspec.Address
	OwnerID     string
	Name        string // for people; empty: that of Dir
	Place       string // where the files lie, as the provider's question has it
	Endpoint    string // of the service, or the git server; empty: the public one
	Region      string
	Credentials string // where this host has them, as credentialsHint says; empty: as is usual
	Operator    string // NAME <mail>, of commits; empty: the one that git knows
}

// local is the provider whose files lie in the directory of the manifest, unless a place is
// given.
const local, vault = "local", "vault"

// A provider is the questions for one, and the form of its credentials.
type provider struct {
	name     string
	place    string   // how its place is written; empty: none is needed
	endpoint string   // question for the endpoint; empty: it has none
	region   bool     // it may have one
	fields   []string // of its credentials
	usual    []string // variables that have them, in the same order; empty: it needs none
}

var kinds = []provider{
	{name: "s3", place: "BUCKET[/PREFIX]", endpoint: "URL of the service, if it is not Amazon's", region: true,
		fields: []string{"access_key_id", "secret_access_key", "session_token"}, usual: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}},
	{name: origin.GitHub, place: "OWNER/REPO[#BRANCH]", endpoint: "URL of the git server, if it is not GitHub's", fields: []string{"token"}, usual: []string{"GITHUB_TOKEN"}},
	{name: local},
	{name: "azure", place: "CONTAINER[/PREFIX]", endpoint: "URL of the account, such as https://acme.blob.core.windows.net",
		fields: []string{"account_name", "account_key"}, usual: []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"}},
	{name: "gcs", place: "BUCKET[/PREFIX]", endpoint: "URL of the service, if it is not Google's", fields: []string{"credentials_file"}, usual: []string{"GOOGLE_APPLICATION_CREDENTIALS"}},
	{name: vault, place: "DIRECTORY"},
}

// Providers are those of Options.Provider.
func Providers() (names []string) {
	for _, p := range kinds {
		names = append(names, p.name)
	}
	return names
}

// blobEndpoint is that of a connection string; "" if it names none.
func blobEndpoint(connection string) string {
	for field := range strings.SplitSeq(connection, ";") {
		if name, value, _ := strings.Cut(field, "="); name == "BlobEndpoint" {
			return strings.TrimSuffix(value, "/")
		}
	}
	return ""
}

func providerOf(name string) (provider, bool) {
	i := slices.IndexFunc(kinds, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, false
	}
	return kinds[i], true
}

// A Plan is the files to be written.
type Plan struct {
	Workspace *mountspec.Workspace
	Manifest  string   // the WORKSPACE.md
	Secrets   string   // the SECRETS.md; empty: there is none
	Needs     string   // lines that the host configuration needs; empty: none
	Exports   []string // variables that have to be set

	files  []file
	remote bool   // its store can be asked
	asksBy string // advice if the store does not accept the credentials
	config edit
}

type file struct {
	name string
	text []byte
}

// New makes a plan for a host.
func New(o Options, cfg *host.Config) (*Plan, error) {
	p, ok := providerOf(o.Provider)
	if !ok {
		return nil, exit.New(exit.Usage, "there is no provider %.60q to set up", o.Provider).Hint("one of %s", strings.Join(Providers(), ", "))
	}
	if p.place != "" && o.Place == "" {
		return nil, exit.New(exit.Usage, "it is not known where the files of a workspace with --provider %s lie", p.name).
			Hint("give --storage %s, or run it at a terminal, where it asks", p.place)
	}
	plan := &Plan{Manifest: filepath.Join(o.Dir, "WORKSPACE.md"), remote: len(p.usual) > 0}
	c, err := readCredentials(p, o, func(variable string) bool { return isSecret(cfg, variable) })
	if err != nil {
		return nil, err
	}
	plan.asksBy = c.advice(o)
	st, err := p.storage(o, c)
	if err != nil {
		return nil, err
	}
	if c.slug != "" {
		plan.Secrets, plan.Exports = filepath.Join(o.Dir, "SECRETS.md"), c.variables
		st.Auth.Ref, st.Auth.Env = "./SECRETS.md", c.named
	}
	for _, name := range []string{plan.Manifest, plan.Secrets} {
		if _, err := os.Lstat(name); err == nil && name != "" {
			return nil, exit.New(exit.Failed, "%s exists already", name).Hint("edit it, or remove it first; a manifest is never overwritten")
		}
	}
	if plan.Workspace, err = manifestfile.New(o.Dir, o.ID, o.OwnerID, manifestfile.Options{Name: o.Name, Storage: st}); err != nil {
		return nil, err
	}
	if err := plan.write(o, c); err != nil {
		return nil, err
	}
	if plan.config, err = editOf(cfg, p.needs(o, c, st, cfg)); err != nil {
		return nil, err
	}
	plan.Needs, err = plan.config.lines()
	return plan, err
}

// write makes the texts of the files.
func (plan *Plan) write(o Options, c credentials) error {
	if plan.Secrets != "" {
		plan.files = append(plan.files, file{plan.Secrets, c.inventory(o)})
	}
	text, err := manifestfile.Text(plan.Workspace, "")
	plan.files = append(plan.files, file{plan.Manifest, text})
	return err
}

// storage is the storage block.
func (p provider) storage(o Options, c credentials) (*mountspec.Storage, error) {
	switch p.name {
	case local, vault:
		dir, err := expand(cmp.Or(o.Place, o.Dir))
		if err != nil {
			return nil, err
		}
		if fi, err := os.Stat(dir); err == nil && !fi.IsDir() || err != nil && o.Place != "" { // DIR is made
			return nil, exit.New(exit.Unresolvable, "%s is no directory", dir).Hint("make it, or give another")
		}
		if p.name == vault {
			return &mountspec.Storage{Provider: mountspec.ProviderVault, Config: mountspec.VaultConfig{VaultPath: dir}}, nil
		}
		return &mountspec.Storage{Provider: mountspec.ProviderLocalFS, Config: mountspec.LocalFSConfig{MountPath: dir}}, nil
	}
	text := strings.TrimPrefix(o.Place, p.name+":")
	if p.name == origin.GitHub {
		text = strings.TrimPrefix(text, cmp.Or(strings.TrimSuffix(o.Endpoint, "/"), endpoint.PublicGitHub)+"/")
		text = regexp.MustCompile(`\.git(#|$)`).ReplaceAllString(text, "$1")
	}
	place, err := origin.ParsePlace(p.name + ":" + text)
	if err != nil {
		return nil, exit.New(exit.Usage, "--storage: %w", err).Hint("write %s", p.place)
	}
	from := origin.Origin{Place: place, Endpoint: o.Endpoint, Region: o.Region, Auth: c.slug}
	if p.name == origin.GitHub {
		from.Endpoint = "" // the host configuration names it
	}
	if len(c.named) > 0 {
		from.Auth = ""
	}
	if p.name == "s3" && o.Region == "" && o.Endpoint == "" {
		from.Region = "us-east-1"
	}
	if p.name == "azure" && o.Endpoint == "" {
		if from.Endpoint = blobEndpoint(os.Getenv("AZURE_STORAGE_CONNECTION_STRING")); from.Endpoint == "" {
			return nil, exit.New(exit.Usage, "each account of azure has an endpoint of its own").Hint("give --endpoint https://ACCOUNT.blob.core.windows.net")
		}
	}
	st, err := from.Storage(false, mountspec.Options{Registered: daemon.Mountable})
	if err != nil {
		return nil, exit.New(exit.Usage, "%w", err).Hint("give other values for --storage, --endpoint or --region")
	}
	if p.name == origin.GitHub { // else commits stay local until a person pushes them
		st.Sync.Push.On = mountspec.AliasPerCommit
	}
	return st, nil
}

// needs are the additions that the host configuration needs.
func (p provider) needs(o Options, c credentials, st *mountspec.Storage, cfg *host.Config) (list []configedit.Addition) {
	add := func(value string, path ...string) { list = append(list, configedit.Addition{Path: path, Value: value}) }
	item := func(text string, path ...string) {
		list = append(list, configedit.Addition{Path: path, Value: configedit.Text(text), Item: true})
	}
	if c.source != "" {
		add("{ "+c.source+", allow: [ "+configedit.Text(o.ID.String())+" ] }", "secrets", c.slug)
	} else {
		for _, name := range c.named {
			list = append(list, configedit.Addition{Path: []string{"allow_env"}, Item: true,
				Value: "{ name: " + name + ", allow: [ " + configedit.Text(o.ID.String()) + " ] }"})
		}
	}
	switch config := st.Config.(type) {
	case mountspec.SelfBucketConfig:
		if u, err := url.Parse(config.Endpoint); err == nil && config.Endpoint != "" && !endpoint.IsOwn(u, string(config.Kind)) && !cfg.AllowEndpoints.Has(config.Endpoint) {
			item(listed(u), "allow_endpoints")
		}
	case mountspec.GitHubConfig:
		if o.Endpoint != "" && !endpoint.IsPublicGitHub(o.Endpoint) {
			add(configedit.Text(strings.TrimSuffix(o.Endpoint, "/")), "providers", "github", "base_url")
			if u, err := url.Parse(o.Endpoint); err == nil && strings.Contains(listed(u), " ") && !cfg.AllowEndpoints.Has(o.Endpoint) {
				item(listed(u), "allow_endpoints")
			}
		}
		if c.agent {
			add("agent", "providers", "github", "ssh", "credentials")
			item(o.ID.String(), "providers", "github", "ssh", "allow")
		}
	case mountspec.LocalFSConfig:
		list = append(list, allowPath(config.MountPath, o.Dir, cfg)...)
	case mountspec.VaultConfig:
		list = append(list, allowPath(config.VaultPath, o.Dir, cfg)...)
	}
	if who, err := person.Parse(o.Operator); err == nil && p.name == origin.GitHub {
		add("{ name: "+configedit.Text(who.Name)+", email: "+configedit.Text(who.Email)+" }", "identities", mountspec.CurrentOperator)
	}
	return list
}

// isSecret reports whether the host has a variable as a secret.
func isSecret(cfg *host.Config, variable string) bool {
	return slices.ContainsFunc(cfg.Secrets, func(e secrets.Entry) bool {
		env, ok := e.Source.(secrets.Env)
		return ok && slices.Contains(env.Variables(), variable)
	})
}

// lookupTime limits the look-up of a service's addresses.
const lookupTime = 5 * time.Second

// listed is a service as allow_endpoints has it: with its addresses, if these are private or
// loopback ones, which the host grants only by address.
func listed(u *url.URL) string {
	out := endpoint.Origin(u)
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	addrs, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname()) // the trial reports one that is not found
	for _, a := range addrs {
		if a = a.Unmap(); a.IsPrivate() || a.IsLoopback() {
			out += " " + a.String()
		}
	}
	return out
}

// allowPath is the grant of a directory that is not below that of the manifest.
func allowPath(path, dir string, cfg *host.Config) []configedit.Addition {
	path = host.Real(path)
	covers := func(root string) bool { return grant.Below(host.Real(root), path) }
	if covers(dir) || slices.ContainsFunc(cfg.AllowPaths, covers) {
		return nil
	}
	return []configedit.Addition{{Path: []string{"allow_paths"}, Value: configedit.Text(path), Item: true}}
}

// expand makes a path that a person wrote absolute.
func expand(path string) (string, error) {
	home, _ := os.UserHomeDir()
	dir, err := os.Getwd()
	if err == nil {
		path, err = hostfile.Expand(path, home, dir)
	}
	if err != nil {
		return "", exit.New(exit.Usage, "%w", err).Hint("give an absolute path")
	}
	return path, nil
}

// indented is a text of lines, two columns in.
func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

var errInterrupted = exit.New(exit.Failed, "interrupted, and nothing is left of it").Hint("run it again")

// Write writes the files, and with granted the host configuration. undo removes all of it
// again, and so does the end of ctx before the last is written.
func (plan *Plan) Write(ctx context.Context, granted bool) (undo func(), err error) {
	var made []func()
	undo = func() {
		for _, f := range slices.Backward(made) {
			f()
		}
	}
	for _, f := range plan.files {
		remove, err := manifestfile.WriteText(f.name, f.text)
		if err != nil {
			undo()
			return nil, err
		}
		made = append(made, remove)
	}
	if err := ctx.Err(); err != nil {
		undo()
		return nil, errInterrupted
	}
	if granted && plan.Needs != "" {
		back, err := plan.config.write()
		if err != nil {
			undo()
			return nil, err
		}
		made = append(made, back)
	}
	return undo, nil
}

// nextSteps are the commands that remain to be run.
func (plan *Plan) nextSteps(registered bool) (list []string) {
	for _, name := range plan.Exports {
		if _, set := os.LookupEnv(name); !set {
			list = append(list, "export "+name+"=...")
		}
	}
	if !registered {
		list = append(list, fmt.Sprintf("wsmount registry add %s", filepath.Dir(plan.Manifest)))
	}
	return append(list, fmt.Sprintf("wsmount %s MOUNTPOINT", plan.Workspace.ID))
}
