package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
)

// A Plan lists the secrets that Reveal will fetch. Making one checks every grant and asks
// no source, so that validation can show it.
type Plan struct {
	v     *Vault
	r     Request
	needs []Need
}

// A Need is one secret of a plan, without its value.
type Need struct {
	Name      string // slug, or name of the environment variable
	GrantedBy string // the rule that grants it
	Source    string // "environment ACME_KEY", "file /...", "command pass"
	Env       string // the name in auth.state.env of this need, or empty

	source Source
	field  string // of the secret; empty: all
	as     string // name among the credentials, for one field
	entry  *mountspec.SecretEntry
}

// Needs lists what will be fetched, in order.
func (p *Plan) Needs() []Need { return slices.Clone(p.needs) }

// Plan checks everything that can be checked without a value: that each
// secret exists, that the host grants it to the workspace and that its
// inventory entry admits the subject (AIP-19: access before the vault). A
// refusal is in the audit log when Plan returns it. All refusals are
// reported, joined.
func (v *Vault) Plan(r Request) (*Plan, error) {
	p := &Plan{v: v, r: r}
	var errs []error
	add := func(n Need, err error) {
		if err != nil {
			errs = append(errs, v.refuse(r, err))
			return
		}
		p.needs = append(p.needs, n)
	}
	if r.CredentialsRef != "" {
		add(v.needSlug(r, r.CredentialsRef, entryOf(r.Inventory, r.CredentialsRef)))
	}
	for _, name := range r.Env {
		add(v.needEnv(r, name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

func (v *Vault) refuse(r Request, err error) error {
	var e *Error
	if !errors.As(err, &e) || !e.Denied {
		return err
	}
	rec := audit.RevealDenied{Slug: e.Name, Actor: actor(r), Workspace: r.Workspace.String(), Purpose: r.Purpose, Reason: e.Reason}
	return errors.Join(err, v.o.Audit.Write(rec))
}

func actor(r Request) audit.Actor {
	return audit.Actor{UserID: r.Subject.UserID, Roles: r.Subject.Roles}
}

func (v *Vault) needSlug(r Request, slug string, entry *mountspec.SecretEntry) (Need, error) {
	e := v.bySlug[slug]
	if e == nil {
		return Need{}, missing(slug, "the host keeps no secret of that name", keep(slug))
	}
	rule, err := v.grantedSlug(e, r)
	if err != nil {
		return Need{}, err
	}
	if err := admits(slug, entry, r.Subject); err != nil {
		return Need{}, err
	}
	return Need{Name: slug, GrantedBy: rule, Source: e.Source.String(), source: e.Source, entry: entry}, nil
}

// needEnv follows AIP-19 from a name in auth.state.env: the entry that
// claims the name, else the slug made of it, else the host's environment.
// Where the host keeps the slug, its answer is final.
func (v *Vault) needEnv(r Request, name string) (Need, error) {
	if !IsEnvName(name) {
		return Need{}, denied(fmt.Sprintf("%.40q", name), "it is not the name of an environment variable", "write capitals, digits and underscores")
	}
	entry, field := claimant(r.Inventory, name)
	slug := SlugOf(name)
	if entry != nil {
		slug = entry.Slug
	}
	if v.Has(slug) {
		n, err := v.needSlug(r, slug, entry)
		n.Env, n.as, n.field = name, Field(name), field
		return n, err
	}
	rule, err := v.grantedEnv(name, r)
	if err != nil {
		return Need{}, err
	}
	if err := admits(name, entry, r.Subject); err != nil {
		return Need{}, err
	}
	src := Env{Name: name, Lookup: v.o.Lookup}
	return Need{Name: name, GrantedBy: rule, Source: src.String(), source: src, Env: name, as: Field(name), entry: entry}, nil
}

// Credentials are the revealed fields of a plan.
type Credentials struct {
	fields  map[string]Value
	expires time.Time
}

// Field returns one field by its name (access_key_id, token, ...). A secret
// without named fields is under Single.
func (c *Credentials) Field(name string) (Value, bool) {
	v, ok := c.fields[name]
	return v, ok
}

// Names lists the fields, sorted.
func (c *Credentials) Names() []string { return c.Secret().Names() }

// Expires is the earliest end of any of them, or zero.
func (c *Credentials) Expires() time.Time { return c.expires }

// Secret returns the credentials as one secret, as Live wants them.
func (c *Credentials) Secret() Secret { return NewSecret(c.fields, c.expires) }

// Reveal fetches every need. Each is written to the audit log first; a secret
// whose record cannot be written is not fetched, and not handed out. All failures are reported,
// joined.
func (p *Plan) Reveal(ctx context.Context) (*Credentials, error) {
	c := &Credentials{fields: map[string]Value{}}
	from := map[string]string{}
	var errs []error
	for _, n := range p.needs {
		_, err := p.v.obtain(ctx, p.record(n), n.source, func(s Secret) error { return c.take(n, s, from) })
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// Live keeps the credentials of the plan and reveals them anew before they
// end.
func (p *Plan) Live(o LiveOptions) *Live {
	return NewLive(func(ctx context.Context) (Secret, error) {
		c, err := p.Reveal(ctx)
		if err != nil {
			return Secret{}, err
		}
		return c.Secret(), nil
	}, o)
}

func (p *Plan) record(n Need) audit.Reveal {
	r := audit.Reveal{Slug: n.Name, Actor: actor(p.r), Workspace: p.r.Workspace.String(), Purpose: p.r.Purpose,
		GrantedBy: n.GrantedBy, Source: n.source.Kind()}
	if n.entry != nil {
		a := n.entry.Audit
		r.Retention, r.PII, r.Classification = a.Retention, a.PII, a.Classification
	}
	return r
}

// take adds a secret's fields. config.credentials_ref comes first and wins;
// a second source of a field must agree with it: otherwise one of the two is not
// as its author thinks.
func (c *Credentials) take(n Need, s Secret, from map[string]string) error {
	fields, err := n.pick(s)
	if err != nil {
		return err
	}
	for name, v := range fields {
		old, have := c.fields[name]
		if have && !old.Equal(v) {
			return missing(n.Name, fmt.Sprintf("its %s differs from that of %s", name, from[name]), "remove one of the two, or make them the same secret")
		}
		c.fields[name], from[name] = v, n.Name
	}
	if !s.Expires.IsZero() && (c.expires.IsZero() || s.Expires.Before(c.expires)) {
		c.expires = s.Expires
	}
	return nil
}

// pick chooses the fields of a secret that a need means.
func (n Need) pick(s Secret) (map[string]Value, error) {
	if n.as == "" {
		out := map[string]Value{}
		for _, name := range s.Names() {
			out[name], _ = s.Field(name)
		}
		return out, nil
	}
	for _, field := range []string{n.field, snake(n.field), n.as, Single} {
		if v, ok := s.Field(field); ok && field != "" {
			return map[string]Value{n.as: v}, nil
		}
	}
	return nil, missing(n.Name, fmt.Sprintf("it has no field for %s (it has %q)", n.Env, s.Names()), "name the field in exposures of its inventory entry")
}
