package policy

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func allow(principal string, actions ...string) mountspec.Grant {
	g := mountspec.Grant{Principal: mountspec.Principal{Bare: principal}, Pos: mountspec.Pos{File: "p", Line: 3}}
	for _, a := range actions {
		g.Actions = append(g.Actions, mountspec.ActionGrant{Action: a})
	}
	return g
}

func with(g mountspec.Grant, f func(*mountspec.Grant)) mountspec.Grant {
	g.Actions = slices.Clone(g.Actions)
	f(&g)
	return g
}

func layer(p mountspec.Policy) Layer {
	return Layer{Policy: &p, Source: "WORKSPACE.md", Level: "workspace", SHA256: "5e"}
}

func grants(gs ...mountspec.Grant) []Layer { return []Layer{layer(mountspec.Policy{Grants: gs})} }

func TestEvaluate(t *testing.T) {
	bob := allow("operator://bob", Write)
	deny := mountspec.Policy{Default: "deny"}
	for _, c := range []struct {
		name   string
		layers []Layer
		change func(*Request)
		allow  bool
		reason Reason
	}{
		{name: "matching grant", layers: grants(bob), allow: true, reason: MatchedGrant},
		{name: "somebody else's grant", layers: grants(allow("operator://eve", Write)), reason: NoGrant},
		{name: "name that only begins alike", layers: grants(allow("operator://bobby", Write)), reason: NoGrant},
		{name: "same name, other scheme", layers: grants(allow("user://bob", Write)), reason: NoGrant},
		{name: "another action", layers: grants(allow("operator://bob", Read)), reason: NoGrant},
		{name: "everybody", layers: grants(allow("*", Write)), allow: true, reason: MatchedGrant},
		{name: "wildcard action", layers: grants(allow("operator://bob", "storage:*")), allow: true, reason: MatchedGrant},
		{name: "wildcard of another family", layers: grants(allow("operator://bob", "secrets:*")), reason: NoGrant},
		{name: "standard library slug", layers: grants(allow("operator://bob", "@agentik/actions/standard/storage-write")), allow: true, reason: MatchedGrant},
		{name: "slug of somebody's library", layers: grants(allow("operator://bob", "@evil/actions/storage-write")), reason: NoGrant},
		{name: "path of an action", layers: grants(allow("operator://bob", "./actions/storage:write")), reason: NoGrant},
		{name: "entry by ref", layers: grants(with(bob, func(g *mountspec.Grant) {
			g.Principal = mountspec.Principal{Entry: mountspec.IdentityEntry{Ref: "operator://bob"}}
		})), allow: true, reason: MatchedGrant},
		{name: "entry by e-mail proves nothing", layers: grants(with(bob, func(g *mountspec.Grant) {
			g.Principal = mountspec.Principal{Entry: mountspec.IdentityEntry{Name: "Bob", Email: "bob@acme.test"}}
		})), reason: NoGrant},
		{name: "current operator", layers: grants(allow("operator://current", Write)), allow: true, reason: MatchedGrant},
		{name: "current user is no operator", layers: grants(allow("user://current", Write)), reason: NoGrant},
		{name: "role held", layers: grants(allow("role://editor", Write)), change: func(r *Request) { r.Roles = []string{"editor"} }, allow: true, reason: MatchedGrant},
		{name: "role not held", layers: grants(allow("role://owner", Write)), change: func(r *Request) { r.Roles = []string{"editor"} }, reason: NoGrant},
		{name: "group held", layers: grants(allow("group://ops", Write)), change: func(r *Request) { r.Groups = []string{"group://ops"} }, allow: true, reason: MatchedGrant},
		{name: "group not held", layers: grants(allow("group://ops", Write)), reason: NoGrant},
		{name: "no principal matches nothing by accident", layers: grants(allow("", Write)), change: func(r *Request) { r.Principal = "" }, reason: NoGrant},

		{name: "revoked", layers: grants(with(bob, func(g *mountspec.Grant) { g.Revoked = true })), reason: ExplicitRevoke},
		{name: "revoked, another holds", layers: grants(with(bob, func(g *mountspec.Grant) { g.Revoked = true }), bob), allow: true, reason: MatchedGrant},
		{name: "in its lifetime", layers: grants(with(bob, func(g *mountspec.Grant) { g.TTLSeconds, g.GrantedAt = 60, "2026-11-20T11:59:01Z" })), allow: true, reason: MatchedGrant},
		{name: "given later", layers: grants(with(bob, func(g *mountspec.Grant) { g.GrantedAt = "2026-11-20T12:00:01Z" })), reason: ConditionFailed},
		{name: "given later, with a lifetime", layers: grants(with(bob, func(g *mountspec.Grant) { g.TTLSeconds, g.GrantedAt = 60, "2026-11-20T12:00:01Z" })), reason: ConditionFailed},
		{name: "given now", layers: grants(with(bob, func(g *mountspec.Grant) { g.GrantedAt = "2026-11-20T12:00:00Z" })), allow: true, reason: MatchedGrant},
		{name: "expired to the second", layers: grants(with(bob, func(g *mountspec.Grant) { g.TTLSeconds, g.GrantedAt = 60, "2026-11-20T11:59:00Z" })), reason: TTLExpired},
		{name: "lifetime without beginning", layers: grants(with(bob, func(g *mountspec.Grant) { g.TTLSeconds = 60 })), reason: TTLExpired},
		{name: "endless lifetime without beginning", layers: grants(with(bob, func(g *mountspec.Grant) { g.TTLSeconds = 1 << 50 })), reason: TTLExpired},
		{name: "lifetime without readable beginning", layers: grants(with(bob, func(g *mountspec.Grant) { g.TTLSeconds, g.GrantedAt = 60, "yesterday" })), reason: TTLExpired},
		{name: "a lifetime that overflows a duration", layers: grants(with(bob, func(g *mountspec.Grant) { g.TTLSeconds, g.GrantedAt = 1<<40, "2026-11-20T11:59:00Z" })), allow: true, reason: MatchedGrant},

		{name: "unknown condition", layers: grants(with(bob, func(g *mountspec.Grant) { g.Conditions = []mountspec.Condition{{Kind: "full-moon"}} })), reason: ConditionFailed},
		{name: "one of two conditions", layers: grants(with(bob, func(g *mountspec.Grant) {
			g.Conditions = []mountspec.Condition{at("10.1.0.0/16"), {Kind: "full-moon"}}
		})), change: isAt("10.1.2.3"), reason: ConditionFailed},
		{name: "condition that the host shows", layers: grants(with(bob, func(g *mountspec.Grant) { g.Conditions = []mountspec.Condition{at("10.1.0.0/16")} })), change: isAt("10.1.2.3"), allow: true, reason: MatchedGrant},
		{name: "requirement that the host shows", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{bob}, Requirements: []mountspec.Requirement{{Kind: "ip-range", Params: at("10.1.0.0/16").Params}}})}, change: isAt("10.1.2.3"), allow: true, reason: MatchedGrant},
		{name: "scope", layers: grants(with(bob, func(g *mountspec.Grant) { g.Actions[0].Scope = "docs/**" })), reason: ConditionFailed},

		{name: "unknown requirement", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{bob}, Requirements: []mountspec.Requirement{{Kind: "mfa-recent"}}})}, reason: RequirementFailed},
		{name: "requirement of another action", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{bob}, Requirements: []mountspec.Requirement{{Kind: "mfa-recent", AppliesTo: []string{Push}}}})}, allow: true, reason: MatchedGrant},
		{name: "requirement of an action that must be looked up", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{bob}, Requirements: []mountspec.Requirement{{Kind: "mfa-recent", AppliesTo: []string{"@x/actions/y"}}}})}, reason: RequirementFailed},
		{name: "requirement of a second policy", layers: append(grants(bob), layer(mountspec.Policy{Requirements: []mountspec.Requirement{{Kind: "signed-by"}}})), reason: RequirementFailed},
		{name: "limit", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{bob}, Limits: []mountspec.Limit{{Kind: "max-egress-bytes-per-day", Value: 1e9}}})}, reason: LimitExceeded},
		{name: "limit on sandboxes", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{bob}, Limits: []mountspec.Limit{{Kind: "max-concurrent-sandboxes", Value: 1}}})}, allow: true, reason: MatchedGrant},
		{name: "limit on sandboxes that names storage", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{bob}, Limits: []mountspec.Limit{{Kind: "max-concurrent-sandboxes", AppliesTo: []string{"storage:*"}}}})}, reason: LimitExceeded},
		{name: "limit on sandboxes, of a command in one", layers: []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{allow("operator://bob", "sandbox:*")}, Limits: []mountspec.Limit{{Kind: "max-concurrent-sandboxes", Value: 1}}})}, change: executes, reason: LimitExceeded},
		{name: "a command in a sandbox", layers: grants(allow("operator://bob", "sandbox:*")), change: executes, allow: true, reason: MatchedGrant},

		{name: "default allow", layers: []Layer{layer(mountspec.Policy{Default: "allow"})}, allow: true, reason: DefaultAllow},
		{name: "default allow, and one that says nothing", layers: []Layer{layer(mountspec.Policy{Default: "allow"}), layer(mountspec.Policy{})}, reason: NoGrant},
		{name: "default allow, and one that denies", layers: []Layer{layer(mountspec.Policy{Default: "allow"}), layer(deny)}, reason: NoGrant},
		{name: "default allow does not undo a revocation", layers: []Layer{layer(mountspec.Policy{Default: "allow", Grants: []mountspec.Grant{with(bob, func(g *mountspec.Grant) { g.Revoked = true })}})}, reason: ExplicitRevoke},
		{name: "grants are united", layers: []Layer{layer(deny), layer(mountspec.Policy{Grants: []mountspec.Grant{bob}})}, allow: true, reason: MatchedGrant},
		{name: "empty policy denies", layers: []Layer{layer(mountspec.Policy{})}, reason: NoGrant},
		{name: "no policy, owner", change: func(r *Request) { r.Roles = []string{"owner"} }, allow: true, reason: OwnerRule},
		{name: "no policy, not the owner", change: func(r *Request) { r.Roles = []string{"viewer"} }, reason: NoGrant},
	} {
		r := Request{Principal: "operator://bob", Action: Write, At: now}
		if c.change != nil {
			c.change(&r)
		}
		d := Evaluate(c.layers, r)
		if d.Allow != c.allow || d.Reason != c.reason || (d.Verdict == "allow") != c.allow {
			t.Errorf("%s: got %v (%s, %s), want %v (%s); warnings %q", c.name, d.Allow, d.Verdict, d.Reason, c.allow, c.reason, d.Warnings)
		}
		assert.True(t, len(d.PolicyChain) == len(c.layers) && d.EvaluatedAt.Equal(now), c.name, "record", d)
	}
}

func executes(r *Request) { r.Action = Execute }

func at(cidr string) mountspec.Condition {
	return mountspec.Condition{Kind: "ip-range", Params: map[string]any{"cidr": cidr}}
}

func isAt(address string) func(*Request) {
	return func(r *Request) { r.Facts.Addresses = []netip.Addr{netip.MustParseAddr(address)} }
}

func TestWarningsNameWhatWasNotUnderstood(t *testing.T) {
	d := Evaluate(grants(with(allow("*", Write), func(g *mountspec.Grant) {
		g.Conditions = []mountspec.Condition{{Kind: "full-moon"}}
	})), Request{Principal: "user://a", Action: Write, At: now})
	assert.True(t, len(d.Warnings) != 0 && strings.Contains(d.Warnings[0], "full-moon"), "warnings", d.Warnings)
}

func TestReadOnly(t *testing.T) {
	p := func(v any) Layer {
		return Layer{Source: "x", Policy: &mountspec.Policy{Defaults: map[string]map[string]any{"storage": {"read_only": v}}}}
	}
	for _, c := range []struct {
		name   string
		layers []Layer
		want   bool
	}{
		{"none", nil, false}, {"false", []Layer{p(false)}, false}, {"true", []Layer{p(true)}, true},
		{"one of two", []Layer{p(false), p(true)}, true}, {"not a boolean", []Layer{p("yes")}, true},
		{"absent", grants(allow("*", Read)), false},
	} {
		_, got := ReadOnly(c.layers, "storage")
		assert.True(t, got == c.want, c.name, got, c.want)
	}
}

func TestRecordIsAIP38s(t *testing.T) {
	b, err := json.Marshal(Evaluate(grants(allow("*", Write)), Request{Principal: "user://a", Action: Write, At: now}))
	want := `{"decision":"allow","reason":"matched-grant","principal":"user://a","action":"storage:write","grantId":"p:3","policyChain":[{"source":"WORKSPACE.md","layer":"workspace"}],"evaluatedAt":"2026-11-20T12:00:00Z"}`
	assert.True(t, err == nil && string(b) == want, b, want, err)
}

// A further policy without grants never turns a denial into a permission,
// and the answer does not depend on anything but its arguments.
func TestAddingAPolicyWithoutGrantsOnlyNarrows(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		layers := rapid.SliceOfN(rapid.Custom(anyLayer), 1, 3).Draw(t, "layers")
		extra := anyLayer(t)
		extra.Policy.Grants = nil
		r := Request{Principal: rapid.SampledFrom(names).Draw(t, "who"), Action: rapid.SampledFrom(Actions()).Draw(t, "action"), At: now}
		before := Evaluate(layers, r)
		again := Evaluate(layers, r)
		assert.Must(t, reflect.DeepEqual(again, before), "the second answer differs", before, again)
		after := Evaluate(append(layers, extra), r)
		assert.Must(t, !after.Allow || before.Allow, extra.Policy, "made", after, "of", before)
	})
}

var names = []string{"user://a", "operator://b", "*", "role://owner"}

func anyLayer(t *rapid.T) Layer {
	p := &mountspec.Policy{Default: rapid.SampledFrom([]string{"", "allow", "deny"}).Draw(t, "default")}
	for range rapid.IntRange(0, 3).Draw(t, "grants") {
		g := allow(rapid.SampledFrom(names).Draw(t, "principal"), rapid.SampledFrom([]string{Read, Write, "storage:*", "*"}).Draw(t, "ref"))
		g.Revoked = rapid.Bool().Draw(t, "revoked")
		p.Grants = append(p.Grants, g)
	}
	if rapid.Bool().Draw(t, "limited") {
		p.Limits = []mountspec.Limit{{Kind: "x", AppliesTo: []string{rapid.SampledFrom(Actions()).Draw(t, "limit")}}}
	}
	return Layer{Policy: p, Source: "s", Level: "workspace"}
}

// One line says what was decided, until when, and what does not hold.
func TestDecisionInWords(t *testing.T) {
	l := Layer{Source: "team", Policy: &mountspec.Policy{Requirements: []mountspec.Requirement{{Kind: "mfa-recent", Params: params{"within_seconds": 60}}}, Default: "allow"}}
	d := Evaluate([]Layer{l}, Request{Principal: "operator://bob", Action: Push, Facts: Facts{Problem: "it is not there"}})
	for _, want := range []string{"deny, requirement-failed; ", `the host shows nothing of "mfa-recent": it is not there; `, `requirement "mfa-recent" of team is not shown to be met`} {
		assert.Contains(t, d.String(), want)
	}
	assert.Equal(t, Decision{Verdict: "allow", Reason: OwnerRule}.String(), "allow, owner-rule")
}
