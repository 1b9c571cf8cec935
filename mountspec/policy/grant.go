package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// grant says how one grant stands to the request: MatchedGrant, why it does
// not hold, or NoGrant when it is about another principal or action.
func (e *evaluation) grant(l Layer, g *mountspec.Grant) Reason {
	if !e.isFor(l, g) {
		return NoGrant
	}
	named, narrowed := e.names(l, g)
	switch {
	case !named && !narrowed:
		return NoGrant
	case g.Revoked:
		return ExplicitRevoke
	case e.expired(g):
		return TTLExpired
	case !e.may && e.toCome(g):
		e.warn("grant at %s counts from %s on", g.Pos, g.GrantedAt)
		return ConditionFailed
	case !named:
		e.warn("grant at %s is narrowed by a scope that is not understood here and counts as not met", g.Pos)
		return ConditionFailed
	}
	for _, c := range g.Conditions {
		if !e.holds(l, c.Kind, c.Params) {
			e.warn("condition %q of the grant at %s is not shown to be met", c.Kind, g.Pos)
			return ConditionFailed
		}
	}
	return MatchedGrant
}

// names says whether the grant has the action. A scope narrows an action in
// a way that AIP-38 leaves open: such an entry does not count, but explains
// (narrowed).
func (e *evaluation) names(l Layer, g *mountspec.Grant) (named, narrowed bool) {
	for _, a := range g.Actions {
		ok, known := matchAction(a.Action, e.r.Action)
		switch {
		case !known:
			e.warn("action %.80q in %s would have to be looked up; the grant does not count for it", a.Action, l.Source)
		case ok && a.Scope == "":
			named = true
		case ok:
			narrowed = true
		}
	}
	return named, narrowed
}

// expired follows AIP-38: a grant ends at granted_at + ttl_seconds, and one
// with a lifetime but no readable beginning has ended.
func (e *evaluation) expired(g *mountspec.Grant) bool {
	if g.TTLSeconds == 0 {
		return false
	}
	at, err := time.Parse(time.RFC3339, g.GrantedAt)
	if err != nil || g.TTLSeconds < 0 {
		return true
	}
	// Seconds, not a Duration: 300 years of them overflow one.
	ends := time.Unix(at.Unix()+g.TTLSeconds, 0)
	if e.r.At.Before(ends) {
		e.turns(ends)
		return false
	}
	return true
}

// toCome says whether a grant is given later only. AIP-38 has no reason for it.
func (e *evaluation) toCome(g *mountspec.Grant) bool {
	at, err := time.Parse(time.RFC3339, g.GrantedAt)
	if err != nil || !e.r.At.Before(at) {
		return false
	}
	e.turns(at)
	return true
}

// isFor says whether the request's principal is the grant's.
func (e *evaluation) isFor(l Layer, g *mountspec.Grant) bool {
	p := g.Principal.Bare
	if p == "" {
		p = g.Principal.Entry.Ref
	}
	if p == "" {
		e.warn("a principal at %s in %s is given by name, e-mail or file, which proves nothing here; the grant does not count", g.Pos, l.Source)
		return false
	}
	scheme, name, _ := strings.Cut(p, "://")
	switch {
	case p == "*":
		return true
	case scheme == "role":
		return slices.Contains(e.r.Roles, name)
	case name == "current" && (scheme == "user" || scheme == "operator"):
		return strings.HasPrefix(e.r.Principal, scheme+"://")
	}
	return p == e.r.Principal || slices.Contains(e.r.Groups, p)
}

func (e *evaluation) warn(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	if !slices.Contains(e.d.Warnings, w) {
		e.d.Warnings = append(e.d.Warnings, w)
	}
}
