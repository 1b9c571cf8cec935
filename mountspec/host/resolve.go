package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// ResolveOptions of one mount.
type ResolveOptions struct {
	// Trust lets a manifest given by path count as registered, for this call.
	Trust bool
	// ReadOnly is --read-only.
	ReadOnly bool
	// Secrets are slugs and environment names granted on the command line.
	Secrets []string
	// Mounts are further sub-workspaces. The user asked for them, so that
	// allow_refs is not checked; each gets the host's grants to its owner. A source
	// that is a path is absolute or relative to Dir.
	Mounts []mountspec.Mount
	// Strict turns warnings about manifests into errors.
	Strict bool
	// Create makes the directory of a dev-local workspace that is missing.
	// Without it nothing is changed but Options.Places.
	Create bool
	// Dir is the base of a relative target. Empty: the target must be absolute.
	Dir string
	// SandboxMount asks for the volume that the target's sandbox shows at this
	// path, instead of the target itself. Empty: the target.
	SandboxMount string
}

// maxDepth bounds the nesting of workspaces.
const maxDepth = 16

// Resolve follows target, an address or a path, to all data that a mount needs.
// Every refusal is an *Error.
func (r *Resolver) Resolve(ctx context.Context, target string, o ResolveOptions) (*Resolved, error) {
	reg, err := r.store.load()
	if err != nil {
		return nil, err
	}
	s := r.session(ctx, reg, o)
	c, err := s.target(target)
	if err != nil {
		return nil, s.explained(err)
	}
	s.chain = []string{target}
	resolve := s.resolve
	if o.SandboxMount != "" {
		resolve = s.sandboxMount
	}
	got, err := resolve(c, nil)
	if err != nil {
		return nil, s.chained(err)
	}
	if err := s.checkTree(got); err != nil {
		return nil, s.explained(err)
	}
	return got, nil
}

// explained adds the steps before an error to it.
func (s *session) explained(err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Steps = append(slices.Clone(s.steps), e.Steps...)
	}
	return err
}

// target tells an address from a path.
func (s *session) target(target string) (candidate, error) {
	if strings.HasPrefix(target, "@") {
		a, err := mountspec.ParseAddress(target)
		if err != nil {
			return candidate{}, unresolvable("", target, "write @owner/slug", "not an address")
		}
		return s.finder.find(a)
	}
	if !filepath.IsAbs(target) {
		if s.o.Dir == "" {
			return candidate{}, unresolvable("", target, "write @owner/slug or an absolute path", "neither an address nor a path")
		}
		named := target
		target = filepath.Join(s.o.Dir, target)
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			if a, err := mountspec.ParseAddress("@" + named); err == nil {
				return candidate{}, unresolvable("", target, "write "+a.String()+" if the workspace of that name is meant, or make the directory", "does not exist")
			}
		}
	}
	return s.finder.byPath(target, s.o.Trust), nil
}

// chained adds to an error the workspaces by which it was reached.
func (s *session) chained(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Chain == nil {
		e.Chain = s.chain
	}
	return s.explained(err)
}

// resolve builds one workspace and those below it. parent holds the reasons for
// read-only that a child cannot loosen.
func (s *session) resolve(c candidate, parent []Reason) (*Resolved, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	l, err := s.load(c)
	if err != nil {
		return nil, err
	}
	if err := s.accepted(l); err != nil {
		return nil, err
	}
	return s.finish(l, parent)
}

// finish builds a workspace from manifests that were read.
func (s *session) finish(l *loaded, parent []Reason) (*Resolved, error) {
	grants, err := s.grants.authorize(l)
	if err != nil {
		return nil, err
	}
	// A missing grant is refused first: advice about an overlap would be useless then.
	if err := s.checkOverlap(l); err != nil {
		return nil, err
	}
	if err := s.makeLocal(l); err != nil {
		return nil, err
	}
	out := s.build(l, grants)
	if err := s.decide(l, out); err != nil {
		return nil, err
	}
	s.readOnly(l, out, parent)
	if err := s.children(l, out); err != nil {
		return nil, err
	}
	out.Explain = s.steps
	return out, nil
}

// accepted compares a workspace of the registry with its accepted state.
func (s *session) accepted(l *loaded) error {
	e := l.cand.entry
	if e == nil || len(l.files) == 0 && len(e.Files) == 0 {
		return nil
	}
	if l.addsRow(e) {
		s.step("manifest", "was added, and says what the host configuration does")
		return nil
	}
	hint := "look at the difference: wsmount registry accept " + l.ws.ID.String()
	if path := e.Differs(l.governing()); path != "" {
		return s.r.deny(l, "", mountspec.Pos{File: path}, hint, "it is not what was accepted when %s was registered", l.ws.ID)
	}
	if l.loc != e.Location {
		return s.r.deny(l, "", l.storage.ConfigPos, hint, "the storage is now %s, and was %s when %s was registered", l.loc, e.Location, l.ws.ID)
	}
	return nil
}

// registeredPath is the manifest's path, as it is part of the fingerprint.
func (l *loaded) registeredPath() string {
	if l.manifest != "" {
		return l.manifest
	}
	return l.home.root
}

func (s *session) build(l *loaded, g Grants) *Resolved {
	out := &Resolved{Address: l.ws.ID, Workspace: l.ws, Storage: l.storage, Code: l.code, Trust: l.cand.trust, Verified: l.cand.trust != Unverified,
		Manifest: l.manifest, Root: l.home.root, Local: l.local, Location: l.loc, Fingerprint: l.loc.Fingerprint(l.registeredPath()),
		Grants: g, Identity: l.identity, Principal: s.r.Principal(), Warnings: l.warnings, entry: l.cand.entry, layers: l.layers, roles: s.r.cfg.rolesFor(l.ws.ID), groups: s.r.cfg.groupsOf(s.r.Principal()), facts: s.r.facts, sandbox: l.sandbox, secrets: l.secrets, Part: l.scratch}
	if l.from != nil {
		out.From = l.from.Place.String()
	}
	for _, f := range l.files {
		out.Governing = append(out.Governing, f.path)
	}
	out.Reserved = l.reserved
	for _, set := range l.storage.Effective() {
		if set.Value != "" {
			s.steps = append(s.steps, Step{set.Key, set.Value, !set.Explicit})
		}
	}
	s.step("fingerprint", out.Fingerprint)
	return out
}

// rolesFor are the roles of the principal for a workspace: those that the
// host lists, or owner of what it registered.
func (c *Config) rolesFor(workspace mountspec.Address) []string {
	if len(c.Roles) == 0 {
		return []string{"owner"}
	}
	var out []string
	for p, roles := range c.Roles {
		if grant.Matches(p, workspace.Owner, workspace.Slug) {
			out = append(out, roles...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// groupsOf are the groups that the host counts a principal among.
func (c *Config) groupsOf(principal string) (out []string) {
	for group, members := range c.Groups {
		if slices.Contains(members, principal) {
			out = append(out, group)
		}
	}
	return out
}

// decide asks the policy for each action of a mount: no read refuses, no
// write is read-only, no commit or push holds back.
func (s *session) decide(l *loaded, out *Resolved) error {
	out.Decisions = map[string]policy.Decision{}
	for _, action := range policy.Actions() {
		d := out.Evaluate(action, s.r.o.Now(), nil)
		out.Decisions[action] = d
		s.step("policy "+action, d.String())
		if err := s.r.o.Audit.Write(audit.DecisionOf(l.ws.ID.String(), d)); err != nil {
			return unrecorded("", "", err)
		}
	}
	if d := out.Decisions[policy.Read]; !d.Allow {
		return denied("", l.manifest, d.Advice(), "policy does not let %s read %s (%s)", out.Principal, l.ws.ID, d.Reason)
	}
	out.HoldCommit = !out.Decisions[policy.Commit].Allow
	out.HoldPush = !out.Decisions[policy.Push].Allow
	return nil
}

// readOnly collects everything that forbids writing. Nothing takes a reason
// away again.
func (s *session) readOnly(l *loaded, out *Resolved, parent []Reason) {
	add := func(yes bool, source, where string) {
		if yes {
			out.ReadOnly.Reasons = append(out.ReadOnly.Reasons, Reason{Source: source, Where: where})
			s.step("read-only", source+", "+where)
		}
	}
	add(s.o.ReadOnly && len(parent) == 0, "flag", "--read-only")
	out.ReadOnly.Reasons = append(out.ReadOnly.Reasons, parent...)
	add(l.ws.Defaults.ReadOnly, "defaults", "defaults.read_only in "+orDefault(l.manifest, "the registry"))
	add(l.cand.row.readOnly() && !l.ws.Defaults.ReadOnly, "defaults", "read_only of "+l.ws.ID.String()+" in "+s.r.cfg.Path)
	add(l.storage.ReadOnly, "storage", l.storage.Pos.String())
	source, yes := policy.ReadOnly(l.layers, "storage")
	add(yes, "policy", "defaults.storage.read_only in "+source)
	if d := out.Decisions[policy.Write]; !d.Allow {
		add(true, "policy", fmt.Sprintf("%s for %s", d.Reason, d.Principal))
		out.ReadOnly.Reasons[len(out.ReadOnly.Reasons)-1].Passes = policy.May(l.layers, out.request(policy.Write, d.EvaluatedAt, nil))
	}
	add(l.cand.trust == Unverified && l.local == nil, "unverified", "a manifest that is not registered only reads")
}
