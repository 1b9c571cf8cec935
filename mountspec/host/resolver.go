package host

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/facts"
	"github.com/wsmount/wsmount/mountspec/host/location"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/host/registry"
	"github.com/wsmount/wsmount/mountspec/host/usualenv"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// Options of a Resolver. The zero value works and grants nothing.
type Options struct {
	Config *Config // nil: an empty one
	// Registry is the file that `registry add` keeps. Empty: registry.json
	// in Config.Dir.
	Registry string
	// Places is the file that keeps the places of other workspaces, so that their
	// unchanged manifests need not be read again. Empty: they are.
	Places string
	// Home is the directory of .agentproto/workspaces.json. Empty: that is not read.
	Home string
	// Temp is the directory for dev-local workspaces without a root. Empty:
	// os.TempDir.
	Temp string
	// Lookup reads the environment that the program started with. nil: empty.
	Lookup func(name string) (string, bool)
	// Providers reports whether a storage provider is built in. nil: those of AIP-35.
	Providers func(name string) bool
	// Person returns the person for operator://current or user://current, if the
	// configuration has none. nil: there is none.
	Person func(ref string) (Identity, bool)
	// Open opens a store that a workspace is registered from, to read its manifests.
	// nil: none can be.
	Open   func(ctx context.Context, r *Resolver, store *Resolved) (origin.Source, error)
	Now    func() time.Time // nil: time.Now
	Audit  *audit.Log       // nil: not recorded
	Logger *slog.Logger     // nil: silent
}

// A Resolver turns addresses and paths into the data that a mount needs. It is safe
// for concurrent use. It reads the registry anew with each call.
type Resolver struct {
	o     Options
	cfg   *Config
	store store
	vault *secrets.Vault
	facts *facts.File
}

// NewResolver makes a Resolver. It fails when the registry cannot be read
// or the secrets of the configuration contradict each other.
func NewResolver(o Options) (*Resolver, error) {
	if o.Config == nil {
		o.Config = &Config{}
	}
	if o.Temp == "" {
		o.Temp = os.TempDir()
	}
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Registry == "" && o.Config.Dir != "" {
		o.Registry = filepath.Join(o.Config.Dir, RegistryName)
	}
	r := &Resolver{o: o, cfg: o.Config, store: store{o.Registry, new(atomic.Pointer[registry.File])}, facts: &facts.File{Path: o.Config.Facts}}
	_, err := r.store.load()
	if err != nil {
		return nil, err
	}
	r.vault, err = secrets.NewVault(secrets.VaultOptions{Entries: r.cfg.Secrets, AllowEnv: r.cfg.AllowEnv,
		Lookup: o.Lookup, Audit: o.Audit})
	if err != nil {
		return nil, &Error{Class: Invalid, Where: r.cfg.Path, What: "the host configuration is not valid", Err: err, Hint: "keep one of them"}
	}
	return r, nil
}

// Vault returns the host's secrets, for the needs of the host itself (the key of
// its GitHub App, the credentials of its bucket).
func (r *Resolver) Vault() *secrets.Vault { return r.vault }

// CloudBucket is the host's own bucket service, if it has one.
func (r *Resolver) CloudBucket() (b CloudBucket, ok bool) {
	if r.cfg.CloudBucket == nil {
		return b, false
	}
	return *r.cfg.CloudBucket, true
}

// Principal is the user who mounts: that of the configuration, or user://<login>.
func (r *Resolver) Principal() string {
	if r.cfg.Principal != "" {
		return r.cfg.Principal
	}
	return "user://" + login()
}

// login is looked up once, as that reads a file, and by number: USER and LOGNAME
// cannot be trusted.
var login = sync.OnceValue(func() string {
	id := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
})

// Facts is the file of facts, which is read while workspaces are mounted; empty: none.
func (r *Resolver) Facts() string { return r.cfg.Facts }

// Row returns the manifest that the configuration's entry of a workspace stands for, and
// the path for it. The workspace is nil if the entry has no such keys.
func (r *Resolver) Row(a mountspec.Address) (*mountspec.Workspace, string) {
	e := r.cfg.Workspaces[a.String()]
	if e.Row == nil {
		return nil, ""
	}
	manifest := location.Manifest(e.Path)
	return e.Row.at(filepath.Dir(manifest)), manifest
}

// usualEnv returns the owners of the usual environment variables, as far as a registry knows them.
func (r *Resolver) usualEnv(reg *registry.File) usualenv.Known {
	return usualenv.Known{Recorded: reg.UsualEnv, Registered: reg.Names(), Listed: slices.Collect(maps.Keys(r.cfg.Workspaces))}
}

// Identity returns the person that a reference such as operator://current stands
// for, from the host configuration, or Options.Person.
func (r *Resolver) Identity(ref string) (mountspec.IdentityEntry, bool) {
	id, ok := r.cfg.Identities[ref]
	if !ok && (ref == mountspec.CurrentOperator || ref == mountspec.CurrentUser) && r.o.Person != nil {
		id, ok = r.o.Person(ref)
	}
	return mountspec.IdentityEntry{Ref: ref, Name: id.Name, Email: id.Email, GPGKey: id.GPGKey}, ok && ref != ""
}
