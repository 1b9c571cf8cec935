package host

import (
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// maySwap refuses another provider of the storage that the old policy does not grant
// (storage:swap-provider), and a change of the policy that loosens it to grant that. With
// look it only adds the answer to the facts.
func (s *session) maySwap(was func() ([]policy.Layer, error), loosens bool, old, now *Registration, c *Change, look bool) error {
	swaps := old.Location.Provider != now.Location.Provider
	if !swaps && !loosens {
		return nil
	}
	layers, err := was()
	if err != nil {
		return err
	}
	d := s.r.swap(c.Address, layers)
	if c.Facts = append(c.Facts, "policy: "+policy.SwapProvider+" is "+d.Verdict+" ("+string(d.Reason)+")"); look {
		return nil
	}
	if err := s.r.o.Audit.Write(audit.DecisionOf(c.Address.String(), d)); err != nil {
		return unrecorded("", old.Path, err)
	}
	if d.Allow {
		return nil
	}
	what := fmt.Sprintf("change the provider of %s from %s to %s", c.Address, old.Location.Provider, now.Location.Provider)
	if !swaps {
		what = fmt.Sprintf("change the provider of %s, nor the policy to one that does", c.Address)
	}
	return denied("", old.Path, d.Advice(), "policy does not let %s %s (%s)", d.Principal, what, d.Reason)
}

// swap asks policies for storage:swap-provider.
func (r *Resolver) swap(a mountspec.Address, layers []policy.Layer) policy.Decision {
	asked := Resolved{Address: a, Principal: r.Principal(), layers: layers, roles: r.cfg.rolesFor(a), groups: r.cfg.groupsOf(r.Principal()), facts: r.facts}
	return asked.Evaluate(policy.SwapProvider, r.o.Now(), nil)
}

// policiesOf returns the accepted policies: a new policy may not grant itself. If the host
// configuration stood for a manifest, they are the configuration's, which only its owner
// changes, with the files as they were accepted.
func policiesOf(s *session, a mountspec.Address, old *Registration, now *loaded) (out []policy.Layer, err error) {
	if old.HasManifest() {
		l := &loaded{cand: candidate{addr: a, path: old.Path, trust: Registered, how: "what was accepted", ownerID: old.OwnerID, entry: old,
			files: &elsewhere{origin.NewFiles(s.ctx, old.Texts()), old.Root()}}, home: base{addr: a, trust: Registered}}
		for _, follow := range []func(*loaded) error{s.readWorkspace, s.loadStorage, s.loadPolicies} {
			if err := follow(l); err != nil {
				return nil, err
			}
		}
		return l.layers, nil
	}
	if row := now.cand.row; row == nil || !slices.Contains(row.named, "policy") {
		return nil, nil
	}
	for _, l := range now.layers {
		was := slices.IndexFunc(old.Files, func(f Accepted) bool { return f.Path == l.Source && f.SHA256 != l.SHA256 })
		if was >= 0 {
			p, found := mountspec.ParsePolicy(mountspec.Source{Name: l.Source, Data: []byte(old.Files[was].Text)}, s.parse())
			if err := found.Err(); err != nil {
				return nil, err
			}
			l.Policy, l.SHA256 = p, old.Files[was].SHA256
		}
		if l.Level == "workspace" {
			out = append(out, l)
		}
	}
	return out, nil
}
