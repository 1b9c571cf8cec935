package host

import (
	"path/filepath"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/origin"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// maySwap refuses another provider of the storage that the policy, as it was, does not
// grant (storage:swap-provider). Who only looks is told.
func (s *session) maySwap(was func() ([]policy.Layer, error), old, now *Registration, c *Change, look bool) error {
	if old.Location.Provider == now.Location.Provider {
		return nil
	}
	layers, err := was()
	if err != nil {
		return err
	}
	asked := Resolved{Address: c.Address, Principal: s.r.Principal(), layers: layers, roles: s.r.cfg.rolesFor(c.Address), groups: s.r.cfg.groupsOf(s.r.Principal()), facts: s.r.facts}
	d := asked.Evaluate(policy.SwapProvider, s.r.o.Now(), nil)
	if c.Facts = append(c.Facts, "policy: "+policy.SwapProvider+" is "+d.Verdict+" ("+string(d.Reason)+")"); look {
		return nil
	}
	if err := s.r.o.Audit.Write(audit.DecisionOf(c.Address.String(), d)); err != nil {
		return unrecorded("", old.Path, err)
	}
	if !d.Allow {
		return denied("", old.Path, "ask the owner for a grant of "+policy.SwapProvider, "policy does not let %s change the provider of %s from %s to %s (%s)",
			d.Principal, c.Address, old.Location.Provider, now.Location.Provider, d.Reason)
	}
	return nil
}

// policiesOf are the policies as they were accepted: what is new may not grant itself.
func policiesOf(s *session, a mountspec.Address, old *Registration) ([]policy.Layer, error) {
	l := &loaded{cand: candidate{addr: a, path: old.Path, trust: Registered, how: "what was accepted", ownerID: old.OwnerID, entry: old,
		files: &elsewhere{origin.NewFiles(s.ctx, old.texts()), filepath.Dir(old.Path)}}, home: base{addr: a, trust: Registered}}
	if old.hasManifest() {
		for _, follow := range []func(*loaded) error{s.readWorkspace, s.loadStorage, s.loadPolicies} {
			if err := follow(l); err != nil {
				return nil, err
			}
		}
	}
	return l.layers, nil
}
