package policy

import (
	"math"
	"slices"
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// MostCounted is how many acts a limit can count.
const MostCounted = 10_000

// Counted lists the actions that limits can count: the times of the others are not
// recorded.
func Counted() []string { return []string{Commit, Push} }

// rates are the kinds of limits that count acts; the acts are those of applies_to.
var rates = []string{"rate-actions", "rate-commits", "rate-limit", "rate-pushes", "rate-tool-calls"}

var windows = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// Remembered says how long the times of an action count for the limits of some policies;
// 0: none counts them.
func Remembered(layers []Layer, action string) (longest time.Duration) {
	for _, l := range layers {
		for _, m := range l.Policy.Limits {
			if r, ok := rateOf(m); ok && slices.Contains(r.actions, action) {
				longest = max(longest, r.window)
			}
		}
	}
	return longest
}

// Unheeded finds a limit that would never take effect on a store without commits, unnoticed:
// it is of commits or pushes alone, and in such a store each write is its own. A limit of
// reading or writing too stands against those, which is not overlooked.
func Unheeded(layers []Layer) (in Layer, limit mountspec.Limit, found bool) {
	of := func(m mountspec.Limit, action string) bool { return applies(m.AppliesTo, action) }
	for _, l := range layers {
		for _, m := range l.Policy.Limits {
			if (of(m, Commit) || of(m, Push)) && !of(m, Read) && !of(m, Write) {
				return l, m, true
			}
		}
	}
	return in, limit, false
}

// limits says whether a limit stands against the action. Two standard kinds
// count sandboxes and tool calls; a mount starts neither, so they concern
// it only when they name a storage action.
func (e *evaluation) limits(l Layer, m mountspec.Limit) bool {
	elsewhere := m.Kind == "max-concurrent-sandboxes" || m.Kind == "rate-tool-calls"
	if elsewhere && len(m.AppliesTo) == 0 && e.r.Action != Execute || !e.appliesTo(m.AppliesTo) {
		return false
	}
	rate, ok := rateOf(m)
	if !ok || !slices.Contains(rate.actions, e.r.Action) {
		e.warn("limit %q of %s cannot be checked here and counts as exceeded", m.Kind, l.Source)
		return true
	}
	free := rate.free(e.r.Done, e.r.At)
	if rate.most > 0 && (free.IsZero() || e.may) {
		return false
	}
	e.turns(free)
	return true
}

// A rate is a limit that counts acts: at most so many in any window of time. Those of
// several actions are counted together.
type rate struct {
	actions []string
	most    int
	window  time.Duration
}

// rateOf reads a limit as one that counts acts. A limit with further keys, or values that
// are not understood, is none.
func rateOf(m mountspec.Limit) (r rate, ok bool) {
	r.window, ok = windows[m.Per]
	if !ok || !slices.Contains(rates, m.Kind) || m.Scope != "" || len(m.Params) > 0 || math.IsNaN(m.Value) || m.Value < 0 || m.Value > MostCounted {
		return rate{}, false
	}
	r.most = int(m.Value)
	for _, ref := range m.AppliesTo {
		for _, action := range Counted() {
			matches, known := matchAction(ref, action)
			if !known {
				return rate{}, false
			}
			if matches && !slices.Contains(r.actions, action) {
				r.actions = append(r.actions, action)
			}
		}
	}
	return r, len(r.actions) > 0
}

// free is when the next act may be done; zero: now, or never where there may be none.
func (r rate) free(done Done, at time.Time) time.Time {
	var counted []time.Time
	for action, times := range done {
		if !slices.Contains(r.actions, action) {
			continue
		}
		for _, t := range times {
			if t.Add(r.window).After(at) { // one of a clock that went ahead counts, too
				counted = append(counted, t)
			}
		}
	}
	if r.most == 0 || len(counted) < r.most {
		return time.Time{}
	}
	slices.SortFunc(counted, time.Time.Compare)
	return counted[len(counted)-r.most].Add(r.window)
}
