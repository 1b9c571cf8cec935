package policy

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec"
)

// friday is a time of the day of now, which is one.
func friday(clock string) time.Time {
	t, err := time.Parse(time.DateTime, "2026-11-20 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// atWork is from nine to five from Monday to Friday, where clocks show an hour more than UTC.
func atWork() *Hours {
	return &Hours{Zone: time.FixedZone("east", 3600), Days: [7]bool{false, true, true, true, true, true, false}, From: 9 * time.Hour, To: 17 * time.Hour}
}

// Each condition holds by what the host shows and by nothing else, and the answer says until
// when it stands.
func TestConditions(t *testing.T) {
	const ann, cat = "operator://ann", "operator://cat"
	addresses := func(list ...string) (f Facts) {
		for _, a := range list {
			f.Addresses = append(f.Addresses, netip.MustParseAddr(a))
		}
		return f
	}
	approved := func(list ...Approval) Facts {
		for i := range list {
			if list[i].Actions == nil {
				list[i].Actions = []string{"storage:*"}
			}
		}
		return Facts{Approvals: list}
	}
	ipRange, mfa, role, two := params{"cidr": "10.1.0.0/16"}, params{"within_seconds": 3600}, params{"role": "owner"}, params{"role": "owner", "count": 2}
	for _, c := range []struct {
		name  string
		kind  string
		p     params
		facts Facts
		at    time.Time // zero: now
		holds bool
		until time.Time
	}{
		{name: "hours that the host does not say", kind: "during-business-hours"},
		{name: "in hours", kind: "during-business-hours", facts: Facts{Hours: atWork()}, holds: true, until: friday("16:00:00")},
		{name: "hours begin", kind: "during-business-hours", facts: Facts{Hours: atWork()}, at: friday("08:00:00"), holds: true, until: friday("16:00:00")},
		{name: "before hours", kind: "during-business-hours", facts: Facts{Hours: atWork()}, at: friday("07:59:59"), until: friday("08:00:00")},
		{name: "hours have ended, before the weekend", kind: "during-business-hours", facts: Facts{Hours: atWork()}, at: friday("16:00:00"), until: friday("08:00:00").AddDate(0, 0, 3)},
		{name: "after the hours of the only day", kind: "during-business-hours", facts: Facts{Hours: &Hours{Zone: time.UTC, Days: [7]bool{5: true}, From: time.Hour, To: 24 * time.Hour}},
			at: friday("00:30:00").AddDate(0, 0, 1), until: friday("01:00:00").AddDate(0, 0, 7)},
		{name: "hours of no day", kind: "during-business-hours", facts: Facts{Hours: &Hours{Zone: time.UTC, To: time.Hour}}},
		{name: "hours of another zone", kind: "during-business-hours", p: params{"timezone": "Asia/Tokyo"}, facts: Facts{Hours: atWork()}},

		{name: "no address", kind: "ip-range", p: ipRange},
		{name: "address in the range", kind: "ip-range", p: ipRange, facts: addresses("10.1.2.3"), holds: true},
		{name: "the same, mapped", kind: "ip-range", p: ipRange, facts: addresses("::ffff:10.1.2.3"), holds: true},
		{name: "address outside", kind: "ip-range", p: ipRange, facts: addresses("10.2.2.3")},
		{name: "one of two outside", kind: "ip-range", p: ipRange, facts: addresses("10.1.2.3", "192.0.2.1")},
		{name: "range that is none", kind: "ip-range", p: params{"cidr": "10.1"}, facts: addresses("10.1.2.3")},
		{name: "range with more to it", kind: "ip-range", p: params{"cidr": "10.0.0.0/8", "except": "10.1.0.0/16"}, facts: addresses("10.1.2.3")},

		{name: "no second factor", kind: "mfa-recent", p: mfa},
		{name: "second factor", kind: "mfa-recent", p: mfa, facts: Facts{MFA: friday("11:30:00")}, holds: true, until: friday("12:30:00")},
		{name: "second factor to the second", kind: "mfa-recent", p: mfa, facts: Facts{MFA: friday("11:00:00")}},
		{name: "second factor that is to come", kind: "mfa-recent", p: mfa, facts: Facts{MFA: friday("12:00:01")}, until: friday("12:00:01")},
		{name: "recent without a number", kind: "mfa-recent", facts: Facts{MFA: friday("11:59:59")}},
		{name: "recent in words", kind: "mfa-recent", p: params{"within_seconds": "3600"}, facts: Facts{MFA: friday("11:59:59")}},

		{name: "no approval", kind: "approval-from", p: role},
		{name: "approval", kind: "approval-from", p: role, facts: approved(Approval{By: ann, Role: "owner"}), holds: true},
		{name: "approval that ends", kind: "approval-from", p: role, facts: approved(Approval{By: ann, Role: "owner", Until: friday("13:00:00")}), holds: true, until: friday("13:00:00")},
		{name: "approval that has ended", kind: "approval-from", p: role, facts: approved(Approval{By: ann, Role: "owner", Until: friday("12:00:00")})},
		{name: "approval that is to come", kind: "approval-from", p: role, facts: approved(Approval{By: ann, Role: "owner", At: friday("13:00:00")}), until: friday("13:00:00")},
		{name: "approval by another role", kind: "approval-from", p: role, facts: approved(Approval{By: ann, Role: "viewer"})},
		{name: "approval of another action", kind: "approval-from", p: role, facts: approved(Approval{By: ann, Role: "owner", Actions: []string{Push}})},
		{name: "approval of one's own", kind: "approval-from", p: role, facts: approved(Approval{By: "operator://bob", Role: "owner"})},
		{name: "approval by the same twice", kind: "approval-from", p: two, facts: approved(Approval{By: ann, Role: "owner"}, Approval{By: ann, Role: "owner"})},
		{name: "approval of one's own, spelled otherwise", kind: "approval-from", p: role, facts: approved(Approval{By: "user://Bob/", Role: "owner"}, Approval{By: "bob", Role: "owner"})},
		{name: "approval by the same in two spellings", kind: "approval-from", p: two, facts: approved(Approval{By: ann, Role: "owner"}, Approval{By: "user://Ann", Role: "owner"})},
		{name: "approval by two", kind: "approval-from", p: two, holds: true, until: friday("14:00:00"),
			facts: approved(Approval{By: ann, Role: "owner"}, Approval{By: cat, Role: "owner", Until: friday("14:00:00")})},
		{name: "approval by nobody in particular", kind: "approval-from", p: params{"count": 1}, facts: approved(Approval{By: ann})},
		{name: "approval by less than one", kind: "approval-from", p: params{"role": "owner", "count": 0}, facts: approved(Approval{By: ann, Role: "owner"})},

		{name: "no signature", kind: "signed-by", p: role},
		{name: "signature of the policy", kind: "signed-by", p: role, facts: Facts{Signatures: []Signature{{By: ann, Role: "owner", SHA256: "5e"}}}, holds: true},
		{name: "signature of what it was", kind: "signed-by", p: role, facts: Facts{Signatures: []Signature{{By: ann, Role: "owner", SHA256: "5f"}}}},
		{name: "signature by another role", kind: "signed-by", p: role, facts: Facts{Signatures: []Signature{{By: ann, Role: "editor", SHA256: "5e"}}}},
	} {
		at := c.at
		if at.IsZero() {
			at = now
		}
		g := with(allow("operator://bob", Write), func(g *mountspec.Grant) { g.Conditions = []mountspec.Condition{{Kind: c.kind, Params: c.p}} })
		d := Evaluate(grants(g), Request{Principal: "operator://bob", Action: Write, At: at, Facts: c.facts})
		assert.True(t, d.Allow == c.holds && d.Until.Equal(c.until), c.name, "got", d.Allow, "until", d.Until, "want", c.holds, "until", c.until, "warnings", d.Warnings)
	}
}

// What the host cannot read is told, not taken for a no without a reason.
func TestProblemIsTold(t *testing.T) {
	g := with(allow("operator://bob", Write), func(g *mountspec.Grant) { g.Conditions = []mountspec.Condition{at("10.0.0.0/8")} })
	d := Evaluate(grants(g), Request{Principal: "operator://bob", Action: Write, At: now, Facts: Facts{Problem: "facts.yaml: no such file"}})
	assert.True(t, !d.Allow && strings.Contains(strings.Join(d.Warnings, " "), "facts.yaml: no such file"), "warnings", d.Warnings)
}

func TestLimits(t *testing.T) {
	limit := func(most float64, per string, actions ...string) mountspec.Limit {
		return mountspec.Limit{Kind: "rate-limit", Value: most, Per: per, AppliesTo: actions}
	}
	before := func(list ...time.Duration) (out []time.Time) {
		for _, d := range list {
			out = append(out, now.Add(-d))
		}
		return out
	}
	for _, c := range []struct {
		name  string
		limit mountspec.Limit
		done  Done
		allow bool
		until time.Time
	}{
		{name: "nothing was done", limit: limit(1, "hour", Commit), allow: true},
		{name: "room for one more", limit: limit(2, "hour", Commit), done: Done{Commit: before(time.Minute)}, allow: true},
		{name: "all done", limit: limit(2, "hour", Commit), done: Done{Commit: before(30*time.Minute, time.Minute)}, until: now.Add(30 * time.Minute)},
		{name: "more than all", limit: limit(1, "hour", Commit), done: Done{Commit: before(30*time.Minute, time.Minute)}, until: now.Add(59 * time.Minute)},
		{name: "an hour ago to the moment", limit: limit(1, "hour", Commit), done: Done{Commit: before(time.Hour)}, allow: true},
		{name: "by a clock that went ahead", limit: limit(1, "second", Commit), done: Done{Commit: before(-time.Minute)}, until: now.Add(time.Minute + time.Second)},
		{name: "what others count", limit: limit(1, "hour", Commit), done: Done{Push: before(time.Minute)}, allow: true},
		{name: "two actions together", limit: limit(2, "day", Commit, Push), done: Done{Push: before(23 * time.Hour), Commit: before(time.Minute)}, until: now.Add(time.Hour)},
		{name: "nothing at all", limit: limit(0, "minute", Commit)},
		{name: "of another action", limit: limit(0, "minute", Push), allow: true},
		{name: "of all that storages do", limit: limit(5, "minute", "storage:*"), allow: true},
		{name: "of no action in particular", limit: limit(5, "minute")},
		{name: "of an action that must be looked up", limit: limit(5, "minute", Commit, "@x/actions/y")},
		{name: "without a window", limit: limit(5, "", Commit)},
		{name: "of more than can be counted", limit: limit(MostCounted+1, "day", Commit)},
		{name: "of bytes", limit: mountspec.Limit{Kind: "max-egress-bytes-per-day", Value: 1e3, Per: "day", AppliesTo: []string{Commit}}},
		{name: "of a scope", limit: mountspec.Limit{Kind: "rate-limit", Value: 5, Per: "day", Scope: "docs/**", AppliesTo: []string{Commit}}},
	} {
		l := []Layer{layer(mountspec.Policy{Grants: []mountspec.Grant{allow("*", "storage:*")}, Limits: []mountspec.Limit{c.limit}})}
		r := Request{Principal: "operator://bob", Action: Commit, At: now, Done: c.done}
		d := Evaluate(l, r)
		assert.Equal(t, May(l, r), c.allow || !c.until.IsZero(), c.name, "whether it ever may")
		if d.Allow != c.allow || !d.Until.Equal(c.until) || !c.allow && d.Reason != LimitExceeded {
			t.Errorf("%s: got %v (%s) until %v, want %v until %v; warnings %q", c.name, d.Allow, d.Reason, d.Until, c.allow, c.until, d.Warnings)
		}
	}
	both := []Layer{layer(mountspec.Policy{Limits: []mountspec.Limit{limit(1, "minute", Commit), limit(9, "hour", Commit)}}), layer(mountspec.Policy{})}
	assert.Equal(t, Remembered(both, Commit), time.Hour, "how long commits are remembered")
	assert.Equal(t, Remembered(both, Push), 0, "how long pushes are remembered")
}

// A policy varies for the actions that something of it is about which may change.
func TestVaries(t *testing.T) {
	limited := mountspec.Policy{Limits: []mountspec.Limit{{Kind: "rate-commits", AppliesTo: []string{Commit}}}}
	for name, c := range map[string]struct {
		p    mountspec.Policy
		want []string
	}{
		"a grant":              {mountspec.Policy{Grants: []mountspec.Grant{allow("*", "storage:*")}}, nil},
		"a grant that ends":    {mountspec.Policy{Grants: []mountspec.Grant{with(allow("*", Push), func(g *mountspec.Grant) { g.TTLSeconds = 1 })}}, []string{Push}},
		"a grant that begins":  {mountspec.Policy{Grants: []mountspec.Grant{with(allow("*", Push), func(g *mountspec.Grant) { g.GrantedAt = "2026-11-20T12:00:01Z" })}}, []string{Push}},
		"a condition":          {mountspec.Policy{Grants: []mountspec.Grant{with(allow("*", "storage:*"), func(g *mountspec.Grant) { g.Conditions = []mountspec.Condition{at("::/0")} })}}, Actions()},
		"a requirement":        {mountspec.Policy{Requirements: []mountspec.Requirement{{Kind: "mfa-recent"}}}, Actions()},
		"a limit":              {limited, []string{Commit}},
		"an action to look up": {mountspec.Policy{Requirements: []mountspec.Requirement{{Kind: "mfa-recent", AppliesTo: []string{"@x/actions/y"}}}}, Actions()},
	} {
		var got []string
		for _, action := range Actions() {
			if Varies([]Layer{layer(c.p)}, action) {
				got = append(got, action)
			}
		}
		assert.Slice(t, got, c.want, name)
	}
	assert.True(t, Varies([]Layer{layer(limited)}, Read, Commit), "one of two actions does not vary")
}

// Until its Until, an answer stays what it is, whatever it is made of.
func TestAnswersStandUntilTheyTurn(t *testing.T) {
	second := func(t *rapid.T, name string) time.Time {
		return now.Add(time.Duration(rapid.IntRange(-5000, 5000).Draw(t, name)) * time.Second)
	}
	tier.Check(t, func(t *rapid.T) {
		f := Facts{Hours: atWork(), MFA: second(t, "mfa"), Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
		for range rapid.IntRange(0, 3).Draw(t, "approvals") {
			a := Approval{By: rapid.SampledFrom(names).Draw(t, "by"), Role: "owner", Actions: []string{"*"}, At: second(t, "approved")}
			if rapid.Bool().Draw(t, "ends") {
				a.Until = second(t, "until")
			}
			f.Approvals = append(f.Approvals, a)
		}
		p := &mountspec.Policy{}
		for range rapid.IntRange(1, 3).Draw(t, "grants") {
			g := allow("*", Commit)
			if rapid.Bool().Draw(t, "lives") {
				g.TTLSeconds, g.GrantedAt = int64(rapid.IntRange(1, 9000).Draw(t, "ttl")), second(t, "granted").Format(time.RFC3339)
			}
			for range rapid.IntRange(0, 2).Draw(t, "conditions") {
				g.Conditions = append(g.Conditions, rapid.SampledFrom([]mountspec.Condition{{Kind: "during-business-hours"},
					{Kind: "mfa-recent", Params: params{"within_seconds": 600}}, {Kind: "approval-from", Params: params{"role": "owner"}}, at("10.0.0.0/8")}).Draw(t, "condition"))
			}
			p.Grants = append(p.Grants, g)
		}
		r := Request{Principal: "operator://bob", Action: Commit, At: now, Facts: f, Done: Done{}}
		if rapid.Bool().Draw(t, "limited") {
			p.Limits = []mountspec.Limit{{Kind: "rate-commits", Value: float64(rapid.IntRange(0, 2).Draw(t, "most")), Per: "hour", AppliesTo: []string{Commit}}}
			for range rapid.IntRange(0, 3).Draw(t, "done") {
				r.Done[Commit] = append(r.Done[Commit], second(t, "commit"))
			}
		}
		layers := []Layer{{Policy: p, Source: "s", Level: "workspace"}}
		first, may := Evaluate(layers, r), May(layers, r)
		r.At = second(t, "later")
		assert.Must(t, r.At.Before(now) || !Evaluate(layers, r).Allow || may, "it is allowed at", r.At, "and was never to be")
		for _, c := range []bool{first.Until.IsZero(), r.At.Before(first.Until)} {
			if later := Evaluate(layers, r); c && !r.At.Before(now) && (later.Allow != first.Allow || later.Reason != first.Reason) {
				t.Fatalf("%v at %v, which stands until %v, and %v at %v", first, now, first.Until, later, r.At)
			}
		}
		assert.Must(t, first.Until.IsZero() || first.Until.After(now), "it stands until", first.Until, "which is not after", now)
	})
}

// Defaults make a block stricter and never looser, and none of them is passed over.
func TestStorageDefaults(t *testing.T) {
	github := func() *mountspec.Storage {
		s := &mountspec.Storage{Provider: mountspec.ProviderGitHub, Exclude: []string{"a/"}}
		s.Sync = mountspec.Sync{Mode: mountspec.ModePullPush, Conflict: mountspec.ConflictRebase}
		s.Sync.Pull = mountspec.Pull{On: mountspec.EventWorkspaceOpen, TTL: time.Minute}
		s.Sync.Commit.On, s.Sync.Push.On, s.Sync.Push.Branch = mountspec.EventTurnEnd, mountspec.EventManual, mountspec.BranchPerConversation
		return s
	}
	apply := func(defaults map[string]any) (*mountspec.Storage, []Default, error) {
		return Storage([]Layer{{Source: "p", Policy: &mountspec.Policy{Defaults: map[string]map[string]any{"storage": defaults}}}}, github())
	}
	for _, c := range []struct {
		name    string
		key     string // below sync
		value   any
		applied bool
		has     func(mountspec.Sync) any
	}{
		{"sooner", "pull.ttl_seconds", 30, true, func(s mountspec.Sync) any { return s.Pull.TTL }},
		{"later", "pull.ttl_seconds", 90, false, func(s mountspec.Sync) any { return s.Pull.TTL }},
		{"commits by hand", "commit.on", "manual", true, func(s mountspec.Sync) any { return s.Commit.On }},
		{"commits of conversations", "commit.on", "conversation-end", false, func(s mountspec.Sync) any { return s.Commit.On }},
		{"pushes by themselves", "push.on", "per-commit", false, func(s mountspec.Sync) any { return s.Push.On }},
		{"further off", "push.branch_policy", "per-turn", true, func(s mountspec.Sync) any { return s.Push.Branch }},
		{"the tracked branch", "push.branch_policy", "main", false, func(s mountspec.Sync) any { return s.Push.Branch }},
		{"a person decides", "conflict.policy", "manual", true, func(s mountspec.Sync) any { return s.Conflict }},
		{"the last one wins", "conflict.policy", "last-writer-wins", false, func(s mountspec.Sync) any { return s.Conflict }},
		{"another mode", "mode", "canonical", false, func(s mountspec.Sync) any { return s.Mode }},
	} {
		block, key, nested := strings.Cut(c.key, ".")
		sync := map[string]any{block: c.value}
		if nested {
			sync[block] = map[string]any{key: c.value}
		}
		got, told, err := apply(map[string]any{"sync": sync})
		assert.OK(t, err)
		changed := !reflect.DeepEqual(c.has(got.Sync), c.has(github().Sync))
		assert.True(t, changed == c.applied && len(told) == 1 && told[0].Applied == c.applied, c.name, "told", told)
	}
	got, _, err := apply(map[string]any{"exclude": []any{"b/", "a/"}, "read_only": true})
	assert.OK(t, err)
	assert.True(t, reflect.DeepEqual(got.Exclude, []string{"a/", "b/"}), "excluded", got.Exclude)
	for name, defaults := range map[string]map[string]any{
		"another key":                    {"provider": "github"},
		"another setting":                {"sync": map[string]any{"push": map[string]any{"of": "manual"}}},
		"a block that is none":           {"sync": "manual"},
		"patterns that are one":          {"exclude": "a/"},
		"a pattern that is none":         {"exclude": []any{"!a"}},
		"a conflict policy that is none": {"sync": map[string]any{"conflict": map[string]any{"policy": "hope"}}},
	} {
		_, _, err := apply(defaults)
		assert.True(t, err != nil, name, "is passed over")
	}
}
