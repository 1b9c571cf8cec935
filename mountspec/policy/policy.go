// Package policy decides what a principal may do with a workspace's
// storage, from the POLICY blocks that its manifests carry (AIP-38).
//
// It knows grants, their lifetime and how several policies compose, and
// promises a pure answer: the same layers, request and instant give the
// same decision, without I/O. A rule that it does not understand never helps: an
// unknown condition, a scope, a limit or a requirement that this host cannot
// check counts as not met, and the decision says so in Warnings. A
// condition holds where the facts of the request show that it does.
//
//	d := policy.Evaluate(layers, policy.Request{
//		Principal: "operator://bob", Action: policy.Write, At: now()})
//	if !d.Allow { ... d.Reason ... }
//
// A decision also says until when it stands if nothing but time goes on, so
// that a caller that keeps it knows when to ask again.
//
// A manifest's policy only ever narrows. A right that the host did not grant
// to the workspace stays ungranted, whatever the decision.
package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// Actions of AIP-39: those that a mount performs, one of a sandbox, and those of commands.
const (
	Read   = "storage:read"
	Write  = "storage:write"
	Commit = "storage:commit"
	Push   = "storage:push"

	Execute      = "sandbox:execute"
	Publish      = "workspace:publish"
	SwapProvider = "storage:swap-provider"
)

// Actions lists those of a mount in the order of their weight.
func Actions() []string { return []string{Read, Write, Commit, Push} }

// A Layer is one policy and where it came from.
type Layer struct {
	Policy *mountspec.Policy
	Source string // the manifest's file, or the policy's id
	Level  string // "workspace", "storage" or "mount"
	SHA256 string // of the file that it stands in, in hexadecimal digits; empty: not known
}

// A Request asks for one action at one instant.
type Request struct {
	// Principal is the actor, as the host knows it: operator://bob. It never
	// comes from a manifest.
	Principal string
	// Roles are the roles that the host gives the principal for this
	// workspace: owner, editor, viewer.
	Roles []string
	// Groups are further names of the principal: group://ops, org://acme, guild://smiths.
	Groups []string
	Action string
	At     time.Time
	Facts  Facts // shown by the host; the zero value: nothing
	Done   Done  // earlier acts, for limits; nil: none
}

// Reason is why a decision came out as it did (AIP-38, decision record).
type Reason string

const (
	NoGrant           Reason = "no-grant"
	ConditionFailed   Reason = "condition-failed"
	RequirementFailed Reason = "requirement-failed"
	LimitExceeded     Reason = "limit-exceeded"
	ExplicitRevoke    Reason = "explicit-revoke"
	TTLExpired        Reason = "ttl-expired"
	MatchedGrant      Reason = "matched-grant"
	DefaultAllow      Reason = "default-allow" // every policy's default is allow; not in AIP-38's list
	OwnerRule         Reason = "owner-rule"    // no policy at all; not in AIP-38's list
)

// A Decision is AIP-38's decision record.
type Decision struct {
	Allow       bool      `json:"-"`
	Verdict     string    `json:"decision"` // "allow" or "deny"
	Reason      Reason    `json:"reason"`
	Principal   string    `json:"principal"`
	Action      string    `json:"action"`
	GrantID     string    `json:"grantId,omitempty"` // source:line of the grant that decided
	PolicyChain []Link    `json:"policyChain"`
	EvaluatedAt time.Time `json:"evaluatedAt"`
	Warnings    []string  `json:"warnings,omitempty"`
	// Until is the moment before which the same request, with the same facts, comes out
	// the same; zero: time alone does not change it.
	Until time.Time `json:"-"`
}

// String says it in one line, with everything that was not understood or not shown.
func (d Decision) String() string {
	text := d.Verdict + ", " + string(d.Reason)
	if !d.Until.IsZero() {
		text += ", until " + d.Until.UTC().Format(time.RFC3339)
	}
	return strings.Join(append([]string{text}, d.Warnings...), "; ")
}

// Advice tells a principal how to get a request allowed that the decision denies.
func (d Decision) Advice() string {
	switch d.Reason {
	case ConditionFailed, RequirementFailed:
		return "have the host show what the policy wants (`facts` of its configuration; `wsmount resolve --explain` names it), or ask the owner for a grant of " + d.Action + " without it"
	case LimitExceeded:
		return "wait until its window has room again, or ask the owner for another limit of " + d.Action
	case TTLExpired:
		return "ask the owner for a new grant of " + d.Action + ": that one has ended"
	}
	return "ask the owner for a grant of " + d.Action
}

// A Link names one policy of the chain.
type Link struct {
	Source string `json:"source"`
	Layer  string `json:"layer"`
}

// Evaluate decides one request. Grants of all layers are united; a default
// allows only when every layer's does; every requirement and limit of every
// layer must be met. Without any layer the owner of the workspace may do
// everything and every other principal nothing (AIP-38, host fallback).
func Evaluate(layers []Layer, r Request) Decision {
	e := evaluation{r: r, d: Decision{Principal: r.Principal, Action: r.Action, EvaluatedAt: r.At, PolicyChain: []Link{}}}
	for _, l := range layers {
		e.d.PolicyChain = append(e.d.PolicyChain, Link{l.Source, l.Level})
	}
	e.decide(layers)
	e.d.Verdict = "deny"
	if e.d.Allow {
		e.d.Verdict = "allow"
	}
	return e.d
}

type evaluation struct {
	r   Request
	d   Decision
	may bool // conditions that may come to hold count as holding
}

// turns notes that a fact or rule used for the decision changes at a time; zero: it does not.
func (e *evaluation) turns(at time.Time) {
	if !at.IsZero() && (e.d.Until.IsZero() || at.Before(e.d.Until)) {
		e.d.Until = at
	}
}

func (e *evaluation) decide(layers []Layer) {
	if len(layers) == 0 {
		e.d.Reason, e.d.Allow = NoGrant, slices.Contains(e.r.Roles, "owner")
		if e.d.Allow {
			e.d.Reason = OwnerRule
		}
		return
	}
	if e.d.Reason, e.d.Allow = e.grants(layers); !e.d.Allow {
		return
	}
	for _, l := range layers {
		if reason := e.unmet(l); reason != "" {
			e.d.Reason, e.d.Allow = reason, false
			return
		}
	}
}

// grants looks for a grant that holds. When none does, the answer names the
// grant that came nearest: a revoked or an expired one explains more than
// "no grant".
func (e *evaluation) grants(layers []Layer) (Reason, bool) {
	nearest, allowByDefault := NoGrant, true
	for _, l := range layers {
		allowByDefault = allowByDefault && l.Policy.Default == "allow"
		for i := range l.Policy.Grants {
			g := &l.Policy.Grants[i]
			switch reason := e.grant(l, g); reason {
			case MatchedGrant:
				e.d.GrantID = g.Pos.String()
				return MatchedGrant, true
			default:
				nearest = nearer(nearest, reason)
			}
		}
	}
	if allowByDefault && nearest != ExplicitRevoke {
		e.warn("allowed only because every policy's default is allow")
		return DefaultAllow, true
	}
	return nearest, false
}

func nearer(a, b Reason) Reason {
	order := []Reason{NoGrant, ConditionFailed, TTLExpired, ExplicitRevoke}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// unmet says whether a requirement or a limit of l stands against the
// action.
func (e *evaluation) unmet(l Layer) Reason {
	for _, q := range l.Policy.Requirements {
		if e.appliesTo(q.AppliesTo) && !e.holds(l, q.Kind, q.Params) {
			e.warn("requirement %q of %s is not shown to be met", q.Kind, l.Source)
			return RequirementFailed
		}
	}
	for _, m := range l.Policy.Limits {
		if e.limits(l, m) {
			return LimitExceeded
		}
	}
	return ""
}

func (e *evaluation) appliesTo(actions []string) bool { return applies(actions, e.r.Action) }

// applies says whether a requirement or a limit of some actions is one of an action.
func applies(actions []string, action string) bool {
	if len(actions) == 0 {
		return true
	}
	return slices.ContainsFunc(actions, func(a string) bool {
		// One that cannot be read may be the one: a requirement or a limit
		// that is not understood stands against.
		ok, known := matchAction(a, action)
		return ok || !known
	})
}

// ReadOnly says whether a policy makes a block (storage, sandbox) read-only by
// itself (defaults.storage.read_only), and which.
func ReadOnly(layers []Layer, block string) (source string, yes bool) {
	for _, l := range layers {
		if v, ok := l.Policy.Defaults[block]["read_only"]; ok && v != false {
			return l.Source, true
		}
	}
	return "", false
}

// matchAction compares a policy's action reference with an action id. known
// is false for a reference that would have to be looked up.
func matchAction(ref, action string) (ok, known bool) {
	if strings.HasPrefix(ref, "@") {
		id, standard := standardAction(ref)
		return standard && id == action, standard
	}
	if strings.ContainsAny(ref, "/") {
		return false, false
	}
	if prefix, wild := strings.CutSuffix(ref, "*"); wild {
		return strings.HasPrefix(action, prefix), true
	}
	return ref == action, true
}

// standardAction reads a registry slug of AIP-39's standard library, where
// storage-commit is storage:commit.
func standardAction(slug string) (string, bool) {
	for _, lib := range []string{"@agentik/actions/standard/", "@agentik/actions-standard/"} {
		if name, ok := strings.CutPrefix(slug, lib); ok {
			return strings.Replace(name, "-", ":", 1), true
		}
	}
	return "", false
}
