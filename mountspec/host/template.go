package host

import (
	"context"
	"path/filepath"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// Publishable follows an address to a workspace whose files may be written into a bundle:
// its manifest is registered and allows others to have it, and the policy allows
// workspace:publish (AIP-39) to the principal. To publish it is still a person's decision: a
// manifest alone publishes nothing (AIP-34, Security considerations).
func (r *Resolver) Publishable(ctx context.Context, a mountspec.Address) (*Resolved, error) {
	got, err := r.source(ctx, a)
	if err != nil {
		return nil, err
	}
	if got.Workspace.Publish.Visibility == "private" {
		return nil, denied("", got.Manifest, "write publish: { visibility: public }, or unlisted, into it", "%s is private", a)
	}
	d := got.Evaluate(policy.Publish, r.o.Now(), nil)
	if err := r.o.Audit.Write(audit.DecisionOf(a.String(), d)); err != nil {
		return nil, unrecorded("", got.Manifest, err)
	}
	if !d.Allow {
		return nil, denied("", got.Manifest, d.Advice(), "policy does not let %s publish %s (%s)", got.Principal, a, d.Reason)
	}
	return got, nil
}

// source follows an address to a workspace to be copied. It refuses an unregistered
// one, which only claims the address.
func (r *Resolver) source(ctx context.Context, a mountspec.Address) (*Resolved, error) {
	got, err := r.Resolve(ctx, a.String(), ResolveOptions{})
	if err != nil {
		return nil, err
	}
	if got.Manifest == "" {
		return nil, unresolvable("", got.Root, "write one: wsmount init --from-row "+a.String(), "%s has no manifest that says what may be done with its files", a)
	}
	if !got.Verified {
		return nil, denied("", got.Manifest, "register it: wsmount registry add "+got.Root, "the manifest is not registered, so that %s is only what it calls itself", a)
	}
	return got, nil
}

// Template follows an address to a workspace that another one, to, may begin from: it is marked as
// a template, and is public, or of the same owner, or the host lets to's owner refer to it.
func (r *Resolver) Template(ctx context.Context, a, to mountspec.Address) (*Resolved, error) {
	got, err := r.source(ctx, a)
	if err != nil {
		return nil, err
	}
	return got, r.MayBegin(got.Workspace, to, got.Manifest)
}

// MayBegin refuses a template that a workspace may not begin from. where is the
// place of its manifest.
func (r *Resolver) MayBegin(template *mountspec.Workspace, to mountspec.Address, where string) error {
	switch {
	case !template.Publish.Template:
		return denied("", where, "write publish: { template: true } into its manifest", "%s is no template", template.ID)
	case template.ID == to:
		return denied("", where, "give another --id", "%s cannot begin from itself", to)
	case template.Publish.Visibility == "public":
		return nil
	}
	refs := references{trail: &trail{}, r: r}
	from := base{addr: to, trust: Registered} // the caller chooses the owner of the new workspace
	return refs.mayRefer(from, template.ID.Owner, template.ID.Slug, mountspec.Ref{Pos: mountspec.Pos{File: where, Line: template.Pos.Line, Column: template.Pos.Column}}, refTemplate)
}

// Bundles is the directory of published bundles, beside the registry file.
// Empty: there is no place for it.
func (r *Resolver) Bundles() string {
	if r.o.Registry == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(r.o.Registry), "published")
}

// RecordPublished records that a workspace was written into a bundle.
func (r *Resolver) RecordPublished(w *Resolved, bundle, sha256 string) error {
	rec := audit.Published{Workspace: w.Address.String(), Version: w.Workspace.Version, Principal: w.Principal, Bundle: bundle, SHA256: sha256}
	if err := r.o.Audit.Write(rec); err != nil {
		return unrecorded("", bundle, err)
	}
	return nil
}

// Kept returns the real paths of files that must not leave the machine with a workspace, even if
// they lie in its directory: the inventories of its secrets, and the host's own places.
func (r *Resolver) Kept(w *Resolved) []string {
	own := r.Own()
	return append(append(append([]string{}, w.secrets...), own.Files...), own.Dirs...)
}
