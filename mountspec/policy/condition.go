package policy

import (
	"net/netip"
	"slices"
	"time"
)

// A check says whether a condition holds, as far as the facts show, and when that changes
// by time alone; zero: it does not. understood is false where its parameters are not those
// that the check knows: one that is left out of account might be the one that forbids.
type check func(e *evaluation, l Layer, p params) (holds bool, turns time.Time, understood bool)

// checks are AIP-38's standard conditions. Requirements are of the same kinds.
var checks = map[string]check{
	"during-business-hours": duringHours,
	"ip-range":              inRange,
	"mfa-recent":            mfaRecent,
	"approval-from":         approvedBy,
	"signed-by":             signedBy,
}

// holds says whether a condition or a requirement of l is shown to be met.
func (e *evaluation) holds(l Layer, kind string, p params) bool {
	known, ok := checks[kind]
	if !ok {
		e.warn("%q is no condition that is known here", kind)
		return false
	}
	holds, turns, understood := known(e, l, p)
	switch {
	case !understood:
		e.warn("the parameters of %q in %s are not understood", kind, l.Source)
		return false
	case !holds && e.r.Facts.Problem != "":
		e.warn("the host shows nothing of %q: %s", kind, e.r.Facts.Problem)
	}
	e.turns(turns)
	return holds || e.may
}

func duringHours(e *evaluation, _ Layer, p params) (holds bool, turns time.Time, understood bool) {
	if h := e.r.Facts.Hours; h != nil {
		holds, turns = h.open(e.r.At)
	}
	return holds, turns, p.only()
}

// inRange wants every address in the range, since the principal may act from any of them.
func inRange(e *evaluation, _ Layer, p params) (holds bool, turns time.Time, understood bool) {
	text, _ := p["cidr"].(string)
	prefix, err := netip.ParsePrefix(text)
	outside := func(a netip.Addr) bool { return !prefix.Contains(a.Unmap()) }
	known := e.r.Facts.Addresses
	return len(known) > 0 && !slices.ContainsFunc(known, outside), time.Time{}, err == nil && p.only("cidr")
}

func mfaRecent(e *evaluation, _ Layer, p params) (holds bool, turns time.Time, understood bool) {
	within, ok := p.count("within_seconds")
	given := e.r.Facts.MFA
	ends := time.Unix(given.Unix()+within, 0)
	switch ok = ok && p.only("within_seconds"); {
	case given.IsZero():
	case e.r.At.Before(given): // a clock went wrong: the factor was not given yet
		turns = given
	case e.r.At.Before(ends):
		holds, turns = true, ends
	}
	return holds, turns, ok
}

// approvedBy counts the people who approved the action, without the principal itself.
func approvedBy(e *evaluation, _ Layer, p params) (holds bool, turns time.Time, understood bool) {
	role, _ := p["role"].(string)
	want, ok := int64(1), true
	if p["count"] != nil {
		want, ok = p.count("count")
	}
	by := map[string]bool{}
	for _, a := range e.r.Facts.Approvals {
		who := person(a.By)
		if a.Role != role || who == person(e.r.Principal) || who == "" || !e.among(a.Actions) {
			continue
		}
		change := a.Until
		switch {
		case e.r.At.Before(a.At):
			change = a.At
		case a.Until.IsZero() || e.r.At.Before(a.Until):
			by[who] = true
		default:
			continue
		}
		if turns.IsZero() || !change.IsZero() && change.Before(turns) {
			turns = change
		}
	}
	return int64(len(by)) >= want, turns, ok && role != "" && p.only("role", "count")
}

// among reports whether actions, as a grant writes them, have that of the request.
func (e *evaluation) among(actions []string) bool {
	return slices.ContainsFunc(actions, func(ref string) bool { ok, _ := matchAction(ref, e.r.Action); return ok })
}

// signedBy wants the file in which the policy stands to be signed as it is now: no signature
// of an earlier content counts.
func signedBy(e *evaluation, l Layer, p params) (holds bool, turns time.Time, understood bool) {
	role, _ := p["role"].(string)
	holds = l.SHA256 != "" && slices.ContainsFunc(e.r.Facts.Signatures, func(s Signature) bool {
		return s.Role == role && s.By != "" && s.SHA256 == l.SHA256
	})
	return holds, time.Time{}, role != "" && p.only("role")
}

// params are the keys of a condition in a manifest, beside its kind.
type params map[string]any

// only reports whether there are no others than these.
func (p params) only(keys ...string) bool {
	for key := range p {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return true
}

// count is a whole number of at least 1, which no sum of seconds overflows.
func (p params) count(key string) (int64, bool) {
	var n int64
	switch v := p[key].(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	case float64:
		if n = int64(v); float64(n) != v {
			return 0, false
		}
	}
	return n, n >= 1 && n < 1<<40
}
