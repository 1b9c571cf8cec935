package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// grantTo is a policy block that grants all of storage to a principal, and more.
func grantTo(principal, more string) string {
	return `policy: { schema: policy/v1, grants: [ { principal: "` + principal + `", actions: [ { action: "storage:*" } ]` + more + ` } ] }`
}

// Who belongs to a group is for the host configuration to say.
func TestGroups(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops", grantTo("group://ops", ""))
	w.add("ws")
	const bob = "principal: operator://bob\n"
	for _, c := range []struct {
		config string
		ok     bool
	}{
		{bob, false}, {bob + "groups: { \"group://ops\": [operator://ann] }\n", false}, {bob + "groups: { \"group://dev\": [operator://bob] }\n", false},
		{bob + "groups: { \"group://ops\": [operator://ann, operator://bob] }\n", true},
	} {
		w.config = c.config
		if c.ok {
			w.ok("@acme/ops", ResolveOptions{})
		} else {
			w.refused("@acme/ops", ResolveOptions{}, Denied, "no-grant")
		}
	}
	for _, group := range []string{"org://acme", "guild://smiths"} {
		w.workspace("of", "@acme/of", grantTo(group, ""))
		w.config = bob + "groups: { \"" + group + "\": [operator://bob] }\n"
		w.ok("of", ResolveOptions{Trust: true})
	}
	_, findings := ParseConfig([]byte("groups: { ops: [operator://bob] }"), ParseOptions{Name: "/c"})
	assert.True(t, findings.Err() != nil, "a group without a scheme is read")
}

// A grant under a condition holds while the host's file of facts shows that it is met. The
// file may change while a workspace is mounted, and cannot be changed from inside.
func TestGrantsHoldByFacts(t *testing.T) {
	w := newWorld(t)
	w.workspace("ws", "@acme/ops", grantTo("operator://bob", `, conditions: [ { kind: mfa-recent, within_seconds: 3600 }, { kind: signed-by, role: owner } ]`))
	w.add("ws")
	w.config = "principal: operator://bob\nfacts: ~/facts.yaml\n"
	shows := func(mfa string) {
		sum := sha256.Sum256(assert.Of(os.ReadFile(w.path("ws/WORKSPACE.md"))).OK(t))
		w.write("home/facts.yaml", "mfa: "+mfa+"\nsignatures: [ { by: operator://ann, role: owner, sha256: "+hex.EncodeToString(sum[:])+" } ]\n")
	}
	e := w.refused("@acme/ops", ResolveOptions{}, Denied, "condition-failed")
	assert.Contains(t, e.Hint, "have the host show what the policy wants")
	shows("2026-11-20T10:00:00Z")
	w.refused("@acme/ops", ResolveOptions{}, Denied, "condition-failed")
	shows("2026-11-20T11:30:00Z")
	got := w.ok("@acme/ops", ResolveOptions{})
	assert.False(t, got.ReadOnly.On() || got.HoldCommit || got.HoldPush, "something is not granted:", got.ReadOnly)
	assert.True(t, got.PolicyVaries(policy.Write), "a policy with conditions does not vary")
	d := got.Decisions[policy.Write]
	assert.True(t, d.Until.Equal(w.now.Add(30*60*1e9)), "the decision stands until", d.Until)
	assert.Equal(t, got.Evaluate(policy.Write, d.Until, nil).Reason, policy.ConditionFailed, "reason after that")
	shows("2026-11-20T12:30:00Z")
	assert.True(t, got.Evaluate(policy.Write, d.Until, nil).Allow, "a newer second factor is not seen")
	assert.True(t, strings.Contains(strings.Join(w.resolver().Own().Files, " "), w.path("home/facts.yaml")), "the facts can be changed from inside")
}

// Defaults of a policy make the storage stricter, and one that would have no effect refuses.
func TestPolicyDefaultsOfStorage(t *testing.T) {
	defaults := func(block string) string {
		return `policy: { schema: policy/v1, default: allow, defaults: { storage: ` + block + ` } }`
	}
	w := newWorld(t)
	w.workspace("ws", "@acme/ops", defaults(`{ exclude: [ ".runs/" ], sync: { push: { on: manual } } }`))
	got := w.ok("ws", ResolveOptions{Trust: true})
	assert.Slice(t, got.Storage.Exclude, []string{".runs/"}, "excluded")
	told := ""
	for _, s := range got.Explain {
		told += s.String() + "\n"
	}
	assert.Contains(t, told, "policy defaults.storage.exclude: .runs/, by ")
	assert.Contains(t, told, "policy defaults.storage.sync.push.on: manual is no stricter")
	w.workspace("ws", "@acme/ops", `policy: { schema: policy/v1, default: allow, limits: [ { kind: rate-commits, value: 1, per: day, applies_to: [ "storage:commit" ] } ] }`)
	w.refused("ws", ResolveOptions{Trust: true}, Denied, "rate-commits", "each write is its own")
	w.workspace("ws", "@acme/ops", defaults(`{ encrypt: true }`))
	w.refused("ws", ResolveOptions{Trust: true}, Denied, "defaults.storage.encrypt", "is not applied")
}

// Another provider of the storage needs a grant of the policy as it was accepted: the new
// one may not grant it to itself. Who only looks sees the answer.
func TestSwapProvider(t *testing.T) {
	for _, c := range []struct {
		name   string
		before string
		reason policy.Reason
		ok     bool
	}{
		{name: "no policy, and the owner", before: "", reason: policy.OwnerRule, ok: true},
		{name: "granted", before: grantTo("operator://bob", ""), reason: policy.MatchedGrant, ok: true},
		{name: "granted to read alone", before: strings.Replace(grantTo("operator://bob", ""), "storage:*", "storage:read", 1), reason: policy.NoGrant},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.config = "principal: operator://bob\n"
			w.workspace("ws", "@acme/ops", c.before)
			w.add("ws")
			w.manifest("ws", "@acme/ops", scratch, grantTo("operator://bob", ""))
			looked := assert.Of(w.resolver().Accept(t.Context(), acmeOps, nil)).OK(t)
			assert.Contains(t, strings.Join(looked.Facts, "\n"), "policy: storage:swap-provider is "+map[bool]string{true: "allow", false: "deny"}[c.ok]+" ("+string(c.reason)+")")
			_, err := w.resolver().Accept(t.Context(), acmeOps, func(Change) bool { return true })
			if c.ok {
				assert.OK(t, err)
				w.ok("@acme/ops", ResolveOptions{})
			} else {
				checkError(t, err, Denied, "does not let operator://bob change the provider", "no-grant")
				w.refused("@acme/ops", ResolveOptions{}, Denied)
			}
			assert.Contains(t, w.log(), policy.SwapProvider, "the audit log")
		})
	}
}
