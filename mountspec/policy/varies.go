package policy

import (
	"slices"

	"github.com/wsmount/wsmount/mountspec"
)

// Varies says whether the answer of some policies for one of some actions may change: with
// time, with the facts of the host, or with the acts counted by limits.
func Varies(layers []Layer, actions ...string) bool {
	return slices.ContainsFunc(actions, func(action string) bool {
		return slices.ContainsFunc(layers, func(l Layer) bool { return varies(l.Policy, action) })
	})
}

// May says whether some policies allow a request, or may come to while they stand: by time,
// by facts that the host shows, or when a limit has room again. A right that they grant to no
// principal, has ended or is not understood never comes.
func May(layers []Layer, r Request) bool {
	e := evaluation{r: r, may: true}
	e.decide(layers)
	return e.d.Allow
}

func varies(p *mountspec.Policy, action string) bool {
	return slices.ContainsFunc(p.Grants, func(g mountspec.Grant) bool {
		return (g.TTLSeconds != 0 || g.GrantedAt != "" || len(g.Conditions) > 0) && slices.ContainsFunc(g.Actions, func(a mountspec.ActionGrant) bool {
			ok, known := matchAction(a.Action, action)
			return ok || !known
		})
	}) || slices.ContainsFunc(p.Requirements, func(q mountspec.Requirement) bool { return applies(q.AppliesTo, action) }) ||
		slices.ContainsFunc(p.Limits, func(m mountspec.Limit) bool { return applies(m.AppliesTo, action) })
}
