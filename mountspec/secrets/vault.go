package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/grant"
)

// An Entry is one secret of the host configuration.
type Entry struct {
	Slug   string
	Source Source
	// Allow lists the address patterns that may have it. nil: the owner in
	// org/<owner>/<name>, and for any other slug none.
	Allow []string
}

// An EnvGrant lets manifests have one variable of the host's environment.
type EnvGrant struct {
	Name string
	// Allow lists address patterns. nil: every registered workspace.
	Allow []string
}

// VaultOptions have the host's configuration. The zero value grants nothing.
type VaultOptions struct {
	Entries  []Entry
	AllowEnv []EnvGrant
	// Lookup reads the environment that the program started with. nil: empty.
	Lookup func(name string) (string, bool)
	Audit  *audit.Log
}

// A Vault answers for the host's secrets. It is safe for concurrent use and
// does not change after NewVault.
type Vault struct {
	o       VaultOptions
	bySlug  map[string]*Entry
	envUser map[string]*Entry // which entry uses an environment variable
}

// NewVault refuses a slug that occurs twice: which of the two would count
// must not depend on an order.
func NewVault(o VaultOptions) (*Vault, error) {
	v := &Vault{o: o, bySlug: map[string]*Entry{}, envUser: map[string]*Entry{}}
	if v.o.Lookup == nil {
		v.o.Lookup = func(string) (string, bool) { return "", false }
	}
	for i := range o.Entries {
		e := &o.Entries[i]
		if _, twice := v.bySlug[e.Slug]; twice {
			return nil, fmt.Errorf("secrets: %s is configured twice: remove one", e.Slug)
		}
		v.bySlug[e.Slug] = e
		if env, ok := e.Source.(Env); ok {
			for _, n := range env.Variables() {
				v.envUser[n] = e
			}
		}
	}
	return v, nil
}

// Has says whether the host keeps a secret of that slug.
func (v *Vault) Has(slug string) bool { return v.bySlug[slug] != nil }

// keep is advice on how to let the host have a secret.
func keep(slug string) string {
	return fmt.Sprintf("write into the host configuration where it is kept: secrets: { %s: { env: VARIABLE } }, or file or command", slug)
}

// Host fetches a secret for the host's own use, such as the key of its
// GitHub App; no manifest leads to it. workspace is the one that it is used
// for. The audit log has it before the source is asked.
func (v *Vault) Host(ctx context.Context, slug string, workspace mountspec.Address, purpose string) (Secret, error) {
	e := v.bySlug[slug]
	if e == nil {
		return Secret{}, missing(slug, "the host keeps no secret of that name", keep(slug))
	}
	rec := audit.Reveal{Slug: slug, Workspace: workspace.String(), Purpose: purpose, GrantedBy: "the host's own", Source: e.Source.Kind()}
	return v.obtain(ctx, rec, e.Source, func(Secret) error { return nil })
}

// obtain asks a source and passes its secret to use. The request is on record
// before it is made, and its outcome before any caller has the secret.
func (v *Vault) obtain(ctx context.Context, rec audit.Reveal, src Source, use func(Secret) error) (Secret, error) {
	if err := v.o.Audit.Write(audit.RevealAsked(rec)); err != nil {
		return Secret{}, unrecorded(rec.Slug, err)
	}
	s, err := src.Fetch(ctx)
	if err != nil {
		err = unfetched(rec.Slug, src.String(), err)
	} else {
		err = use(s)
	}
	if err != nil {
		failed := audit.RevealFailed{Slug: rec.Slug, Actor: rec.Actor, Workspace: rec.Workspace, Purpose: rec.Purpose, Reason: err.Error()}
		return Secret{}, errors.Join(err, v.o.Audit.Write(failed))
	}
	if err := v.o.Audit.Write(rec); err != nil {
		return Secret{}, unrecorded(rec.Slug, err)
	}
	return s, nil
}

// A Subject requests a secret, as the host knows it (AIP-19, actor).
type Subject struct {
	UserID string   // "bob", or a principal such as operator://bob
	Roles  []string // owner, editor, viewer
	Caps   []string // cap://...
}

// A Request has the needs of one storage.
type Request struct {
	Workspace mountspec.Address
	// Registered is false for a manifest that was only given as a path: it
	// gets the secrets in Named and no others.
	Registered bool
	// Named are the slugs and environment names granted on the command line.
	Named []string
	// Protocol is S3, Azure, GCS or GitHub: it decides the usual names.
	Protocol string
	// Usual is by which rule the workspace has the variables of usual names without their
	// being listed. They are the host's own credentials, so no other owner may borrow them.
	// Empty: it has not, and NotUsual says why.
	Usual, NotUsual string
	// CredentialsRef is the slug of config.credentials_ref, or empty.
	CredentialsRef string
	// Env is auth.state.env.
	Env []string
	// Inventory is the target of auth.ref. nil: none.
	Inventory *mountspec.Secrets
	Subject   Subject
	// Purpose goes into the audit log: "storage self-bucket".
	Purpose string
}

// grantedSlug says by which rule the host grants a secret to the request's
// workspace.
func (v *Vault) grantedSlug(e *Entry, r Request) (rule string, err error) {
	if slices.Contains(r.Named, e.Slug) {
		return "named on the command line", nil
	}
	if !r.Registered {
		return "", denied(e.Slug, "the manifest is not registered", "name the secret on the command line, or register the manifest")
	}
	allow := e.Allow
	if allow == nil {
		owner, ok := ownerOfSlug(e.Slug)
		if !ok {
			return "", denied(e.Slug, "the host configuration does not say which workspaces may have it", fmt.Sprintf("add allow: [\"@%s/*\"] to it in the host configuration", r.Workspace.Owner))
		}
		allow = []string{"@" + owner + "/*"}
	}
	if p, ok := grant.MatchesAny(allow, r.Workspace.Owner, r.Workspace.Slug); ok {
		return "secrets: allow " + p, nil
	}
	return "", denied(e.Slug, fmt.Sprintf("the host does not grant it to %s", r.Workspace), fmt.Sprintf("if it may have it, add %q to secrets.%s.allow of the host configuration", r.Workspace.String(), e.Slug))
}

// grantedEnv says by which rule the workspace may have a variable of the
// host's environment.
func (v *Vault) grantedEnv(name string, r Request) (rule string, err error) {
	if slices.Contains(r.Named, name) {
		return "named on the command line", nil
	}
	if !r.Registered {
		return "", denied(name, "the manifest is not registered", "name the variable on the command line, or register the manifest")
	}
	if e := v.envUser[name]; e != nil { // it belongs to an entry already
		return v.grantedSlug(e, r)
	}
	for _, g := range v.o.AllowEnv {
		if g.Name != name {
			continue
		}
		if g.Allow == nil {
			return "allow_env", nil
		}
		if p, ok := grant.MatchesAny(g.Allow, r.Workspace.Owner, r.Workspace.Slug); ok {
			return "allow_env " + p, nil
		}
	}
	return v.usualEnv(name, r)
}

func (v *Vault) usualEnv(name string, r Request) (rule string, err error) {
	hint := fmt.Sprintf("if %s may have it, write into the host configuration: allow_env: [ { name: %s, allow: [ \"@%s/*\" ] } ]",
		r.Workspace, name, r.Workspace.Owner)
	switch {
	case !slices.Contains(usual[r.Protocol], name):
		return "", denied(name, "it is not one of the usual names of this storage, and the host does not list it", hint)
	case r.Usual == "":
		return "", denied(name, r.NotUsual+", and the host does not list it for @"+r.Workspace.Owner, hint)
	}
	return r.Usual, nil
}
