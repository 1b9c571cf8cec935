package policy

import (
	"net/netip"
	"time"
)

// Facts are shown by the host, of the moment and of the principal. A fact that it does not
// show does not hold: the zero value shows nothing, and no condition holds by it.
type Facts struct {
	Hours      *Hours       // when business is done; nil: the host does not say
	Addresses  []netip.Addr // all from which the principal may be acting
	MFA        time.Time    // when the principal last gave a second factor; zero: never
	Approvals  []Approval   // of this workspace
	Signatures []Signature
	Problem    string // why the host shows nothing although it means to; empty: there is none
}

// Hours are the same on each of their days, by the clocks of a zone.
type Hours struct {
	Zone     *time.Location
	Days     [7]bool       // by time.Weekday
	From, To time.Duration // since midnight; From is less than To, which is at most 24 hours
}

// An Approval is the consent of another person to actions of the principal.
type Approval struct {
	By      string   // the approver, as a principal is written
	Role    string   // the approver's
	Actions []string // as a grant writes them
	At      time.Time
	Until   time.Time // zero: it has no end
}

// A Signature is of a file that a policy stands in, and was checked by the host.
type Signature struct {
	By     string
	Role   string
	SHA256 string // of the file, in hexadecimal digits
}

// Done are the times at which each action was done before, the oldest first.
type Done map[string][]time.Time

// open reports whether business is done at a moment, and when that is next otherwise.
func (h *Hours) open(at time.Time) (open bool, turns time.Time) {
	local := at.In(h.Zone)
	for ahead := range 8 { // the same day of next week begins as it does today
		day := time.Date(local.Year(), local.Month(), local.Day()+ahead, 12, 0, 0, 0, h.Zone)
		if !h.Days[day.Weekday()] {
			continue
		}
		from, to := clock(day, h.From), clock(day, h.To)
		switch {
		case at.Before(from):
			return false, from
		case at.Before(to):
			return true, to
		}
	}
	return false, time.Time{}
}

// clock is when the clocks of a day show a time.
func clock(day time.Time, since time.Duration) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, int(since/time.Second), 0, day.Location())
}
