package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/policy"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// sandbox is a workspace's sandbox block as it was read.
type sandbox struct {
	block     *mountspec.Sandbox
	at        base           // where the block stands
	layers    []policy.Layer // those of the workspace, and its own
	inventory *mountspec.Secrets
}

// A Sandbox is the environment of a workspace's command (AIP-36), as far as the host grants it.
type Sandbox struct {
	Block *mountspec.Sandbox
	Env   []Variable
	Unset []string // names that the block passes on and the host lacks
}

// A Variable of the environment in a sandbox.
type Variable struct {
	Name  string
	Value secrets.Value
}

// loadSandbox reads the sandbox block, the manifests of its mounts beside the
// workspace, and those that it refers to. A mount of the workspace runs nothing,
// but all of these govern it, and are guarded like its other manifests.
func (s *session) loadSandbox(l *loaded) error {
	b := l.ws.Sandbox
	if b == nil {
		return nil
	}
	sb := &sandbox{block: b.Inline, at: l.home}
	l.sandbox = sb
	if b.Inline == nil {
		f, at, err := s.refs.follow(l, b.Ref, l.home, refSandbox)
		if err != nil {
			return err
		}
		var findings mountspec.Findings
		if sb.block, findings = mountspec.ParseSandbox(f.source(), s.parse()); findings.Err() != nil {
			return s.findings(l, f.path, findings)
		}
		if err := sameID(b.Ref, sb.block.ID, f.path, CodeSandboxRef); err != nil {
			return err
		}
		sb.at = at
	}
	return s.quiet().loadSandboxRest(l) // its steps would read like those of the workspace's own storage
}

// loadSandboxRest reads the files that a sandbox block refers to.
func (s *session) loadSandboxRest(l *loaded) (err error) {
	sb := l.sandbox
	if sb.layers, err = s.layersOf(l, "workspace", l.ws.Policy, l.home); err != nil {
		return err
	}
	own, err := s.layersOf(l, "sandbox", sb.block.Policy, sb.at)
	if err != nil {
		return err
	}
	sb.layers = append(sb.layers, own...)
	if err := s.loadSandboxSecrets(l); err != nil {
		return err
	}
	return s.loadSandboxFiles(l)
}

// loadSandboxFiles reads the storages of mounts that are files of the workspace. A
// slug leads to a manifest of the host, which is read when a command runs.
func (s *session) loadSandboxFiles(l *loaded) error {
	for _, m := range l.sandbox.block.Mounts {
		if m.Workspace || m.Source.Inline == nil && m.Source.Ref.Kind == mountspec.RefSlug {
			continue
		}
		part, err := s.loadPart(l, m)
		if err != nil {
			return err
		}
		l.govern(part)
	}
	return nil
}

// loadSandboxSecrets finds the inventory of env.auth as it does that of a storage.
func (s *session) loadSandboxSecrets(l *loaded) error {
	if len(l.sandbox.block.EnvAuth.Env) == 0 {
		return nil
	}
	holder := &loaded{cand: l.cand, ws: l.ws, home: l.home, storage: &mountspec.Storage{Auth: l.sandbox.block.EnvAuth}, storageAt: l.sandbox.at}
	if err := s.loadSecrets(holder); err != nil {
		return err
	}
	l.sandbox.inventory = holder.inventory
	l.govern(holder)
	return nil
}

// govern adds the files that were read for a part of l to those that govern l.
func (l *loaded) govern(part *loaded) {
	for _, f := range part.files {
		l.addFile(f)
	}
	l.reserved = append(l.reserved, part.reserved...)
	l.secrets = append(l.secrets, part.secrets...)
}

// isWorkspace reports whether a mount's ref leads to a workspace: AIP-36 lets it be
// one or a storage, and storages are those that the host lists.
func (s *session) isWorkspace(m mountspec.SandboxMount) bool {
	if m.Source.Inline != nil || m.Source.Ref.Kind != mountspec.RefSlug {
		return false
	}
	_, storage := s.r.cfg.Storages[m.Source.Ref.Value]
	_, manifest := s.r.cfg.Manifests[m.Source.Ref.Value]
	return !storage && !manifest
}

// loadPart reads the storage that a sandbox mounts beside the workspace, as if
// it were that of a workspace of the same owner without any other block.
func (s *session) loadPart(l *loaded, m mountspec.SandboxMount) (*loaded, error) {
	ws := *l.ws
	ws.Sandbox, ws.Code, ws.Mounts = nil, nil, nil
	part := &loaded{cand: l.cand, ws: &ws, home: l.home, manifest: l.manifest, scratch: "~" + shortHash(m.At)}
	part.cand.entry = nil // the entry is about the workspace's own storage
	if err := s.takeStorage(part, m.Source, l.sandbox.at); err != nil {
		return nil, err
	}
	for _, follow := range []func(*loaded) error{s.loadPolicies, s.loadIdentities, s.loadSecrets} {
		if err := follow(part); err != nil {
			return nil, err
		}
	}
	return part, nil
}

// sandboxMount resolves the volume that the sandbox of a workspace shows at a path.
func (s *session) sandboxMount(c candidate, _ []Reason) (*Resolved, error) {
	l, err := s.load(c)
	if err != nil {
		return nil, err
	}
	if err := s.accepted(l); err != nil {
		return nil, err
	}
	m, ok := l.mountAt(s.o.SandboxMount)
	if !ok {
		return nil, unresolvable("", l.manifest, "name the path of one of its mounts that is not the workspace", "the sandbox of %s mounts nothing of its own at %s", l.ws.ID, s.o.SandboxMount)
	}
	var reasons []Reason
	if m.Mode == mountspec.MountReadOnly {
		reasons = append(reasons, Reason{Source: "mount", Where: "mode read-only at " + m.At})
	}
	if s.isWorkspace(m) {
		return s.otherWorkspace(l, m, reasons)
	}
	part, err := s.loadPart(l, m)
	if err != nil {
		return nil, err
	}
	if err := s.locate(part); err != nil {
		return nil, err
	}
	return s.finish(part, reasons)
}

func (l *loaded) mountAt(at string) (m mountspec.SandboxMount, ok bool) {
	if l.sandbox == nil {
		return m, false
	}
	i := slices.IndexFunc(l.sandbox.block.Mounts, func(m mountspec.SandboxMount) bool { return !m.Workspace && m.At == at })
	if i < 0 {
		return m, false
	}
	return l.sandbox.block.Mounts[i], true
}

// otherWorkspace resolves another workspace that a sandbox mounts.
func (s *session) otherWorkspace(l *loaded, m mountspec.SandboxMount, reasons []Reason) (*Resolved, error) {
	ref := m.Source.Ref
	a, err := mountspec.ParseAddress(ref.Value)
	if err != nil {
		return nil, unresolvable(CodeStorageRef, ref.Pos.String(), "list it in storages of the host configuration", "%q is neither a storage that the host lists nor the address of a workspace", ref.Value)
	}
	if err := s.refs.mayRefer(l.sandbox.at, a.Owner, a.Slug, ref, refMount); err != nil {
		return nil, err
	}
	sub := s.child(ref.Value)
	c, err := sub.finder.find(a)
	if err == nil {
		err = sub.enter(l, c)
	}
	if err != nil {
		return nil, sub.chained(err)
	}
	out, err := sub.resolve(c, reasons)
	if err != nil {
		return nil, sub.chained(err)
	}
	return out, nil
}

// Sandbox returns the environment of a resolved workspace's command. It refuses if the workspace
// has no sandbox block (AIP-34: commands must be unavailable then), if the block or a policy is
// read-only, if policy does not let the principal execute, and for a variable that the host does
// not grant. It reveals the secrets among the variables.
func (r *Resolver) Sandbox(ctx context.Context, got *Resolved) (*Sandbox, error) {
	sb := got.sandbox
	if sb == nil {
		return nil, r.denySandbox(got, "", got.Manifest, "add a sandbox block, such as sandbox: { inline: { provider: local, config: {} } }",
			"the manifest of %s has no sandbox block, so that commands are unavailable (AIP-34)", got.Address)
	}
	if err := r.mayExecute(got); err != nil {
		return nil, err
	}
	out := &Sandbox{Block: sb.block}
	ask := secrets.Request{Workspace: got.Address, Registered: got.Verified, Purpose: "sandbox " + sb.block.Provider,
		Subject: secrets.Subject{UserID: got.Principal, Roles: got.roles}}
	for _, name := range sb.block.EnvPassthrough {
		if _, ok := r.o.Lookup(name); !ok && !r.vault.Has(secrets.SlugOf(name)) {
			out.Unset = append(out.Unset, name)
		} else if err := out.add(ctx, r.vault, ask, name); err != nil {
			return nil, err
		}
	}
	ask.Inventory = sb.inventory
	for _, name := range sb.block.EnvAuth.Env {
		if err := out.add(ctx, r.vault, ask, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add reveals one variable, if it is granted.
func (b *Sandbox) add(ctx context.Context, v *secrets.Vault, ask secrets.Request, name string) error {
	ask.Env = []string{name}
	plan, err := v.Plan(ask)
	if err != nil {
		return secretError(b.Block.Pos.String(), err)
	}
	got, err := plan.Reveal(ctx)
	if err != nil {
		return secretError(b.Block.Pos.String(), err)
	}
	value, ok := got.Field(secrets.Field(name))
	if !ok || strings.ContainsRune(value.Reveal(), 0) {
		return denied("", b.Block.Pos.String(), "correct the secret", "%s has no value that a variable can hold", name)
	}
	b.Env = append(b.Env, Variable{name, value})
	return nil
}

// mayExecute checks read_only of the block, and the policies.
func (r *Resolver) mayExecute(got *Resolved) error {
	sb := got.sandbox
	where := sb.block.Pos.String()
	source, byPolicy := policy.ReadOnly(sb.layers, "sandbox")
	switch {
	case sb.block.ReadOnly:
		return r.denySandbox(got, CodeSandboxRO, where, "take read_only out of the sandbox block", "the sandbox of %s is read-only: no command runs in it", got.Address)
	case byPolicy:
		return r.denySandbox(got, CodeSandboxRO, source, "ask the owner to change defaults.sandbox.read_only", "a policy of %s makes its sandbox read-only: no command runs in it", got.Address)
	}
	for _, l := range sb.layers {
		for _, key := range slices.Sorted(maps.Keys(l.Policy.Defaults["sandbox"])) {
			if key != "read_only" {
				return r.denySandbox(got, "", l.Source, "write it into the sandbox block itself", "defaults.sandbox.%s of a policy is not applied by this wsmount", key)
			}
		}
	}
	d := policy.Evaluate(sb.layers, got.request(policy.Execute, r.o.Now(), nil))
	if err := r.o.Audit.Write(audit.DecisionOf(got.Address.String(), d)); err != nil {
		return unrecorded("", "", err)
	}
	if !d.Allow {
		return denied("", where, d.Advice(), "policy does not let %s run commands in %s (%s)", got.Principal, got.Address, d.Reason)
	}
	return nil
}

// denySandbox records a refusal.
func (r *Resolver) denySandbox(got *Resolved, code, where, hint, format string, args ...any) error {
	e := denied(code, where, hint, format, args...)
	if err := r.o.Audit.Write(audit.Denied{Workspace: got.Address.String(), What: "sandbox", Reason: e.What}); err != nil {
		e.What += fmt.Sprintf("; the audit log cannot be written: %v", err)
	}
	return e
}
