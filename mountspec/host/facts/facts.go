// Package facts reads the facts that the host shows of the moment: its hours, from which
// addresses the principal acts, when they last gave a second factor, the approvals and
// signatures of others. Conditions of policies hold by them.
//
//	f := facts.File{Path: "/etc/wsmount/facts.yaml"}
//	d := policy.Evaluate(layers, policy.Request{Facts: f.For("acme", "ops"), ...})
//
// The file carries the host's authority as its configuration does, and is believed under
// the same conditions. Unlike that it may be written anew while workspaces are mounted, by
// the program that asks for second factors or collects approvals: it is read again when
// it has changed. It promises that a file which cannot be read, or of which a line is
// wrong, shows nothing, and says why.
package facts

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/hostfile"
	"github.com/wsmount/wsmount/mountspec/host/yamlread"
	"github.com/wsmount/wsmount/mountspec/internal/jsonschema"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// A File is the facts file of a host. It is safe for concurrent use; nil shows nothing.
type File struct {
	Path string // absolute; empty: the host shows nothing

	mu    sync.Mutex     // guards the fields below
	stamp hostfile.Stamp // of the content that was read; zero: it is to be read again
	known *shown
}

// For has the facts that the host shows of a workspace and of its principal.
func (f *File) For(owner, slug string) policy.Facts {
	if f == nil || f.Path == "" {
		return policy.Facts{}
	}
	s, err := f.read()
	if err != nil {
		return policy.Facts{Problem: err.Error()}
	}
	out := s.facts
	for _, a := range s.approvals {
		if grant.Matches(a.of, owner, slug) {
			out.Approvals = append(out.Approvals, a.Approval)
		}
	}
	return out
}

// read reads the file, unless it has not changed since it was read.
func (f *File) read() (*shown, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stamp != (hostfile.Stamp{}) && f.stamp.IsOf(f.Path) {
		return f.known, nil
	}
	f.stamp = hostfile.Stamp{}
	began := time.Now()
	got, err := hostfile.Read(f.Path, hostfile.Options{})
	if err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	s, findings := parse(got.Path, got.Data)
	if err := findings.Err(); err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	if stamp := hostfile.StampOf(&got.Stat); stamp.Settled(began) {
		f.stamp, f.known = stamp, s
	}
	return s, nil
}

// shown has the facts of a file.
type shown struct {
	facts     policy.Facts // without approvals
	approvals []approval
}

// An approval is for the workspaces whose addresses match a pattern.
type approval struct {
	policy.Approval
	of string
}

func parse(name string, data []byte) (*shown, mountspec.Findings) {
	s := &shown{}
	return s, yamlread.Document(name, data, s.top)
}

// Check finds every error in a file of facts.
func Check(name string, data []byte) mountspec.Findings {
	_, found := parse(name, data)
	return found
}

// Outline is the JSON Schema of files of facts, for packages beside this one.
func Outline() *jsonschema.Schema { return yamlread.Outline((&shown{}).top) }

func (s *shown) top(v yamlread.Node) {
	v.Object(yamlread.Fields{
		"business_hours": s.hours,
		"addresses":      s.addresses,
		"mfa":            func(n yamlread.Node) { s.facts.MFA = moment(n) },
		"approvals":      func(n yamlread.Node) { n.Items(s.approval) },
		"signatures":     func(n yamlread.Node) { n.Items(s.signature) },
	})
}

// moment reads a time; the zero one, with a finding, for any other text.
func moment(v yamlread.Node) time.Time {
	s, ok := v.Text()
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	v.Check("time", "write a time such as 2026-05-01T09:30:00Z", err)
	return t
}

var days = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"} // as time.Weekday counts them

func (s *shown) hours(v yamlread.Node) {
	h := &policy.Hours{}
	v.Object(yamlread.Fields{
		"zone": func(n yamlread.Node) {
			if name, ok := n.Text(); ok {
				zone, err := time.LoadLocation(name)
				n.Check("zone", "write a name such as Europe/Berlin", err)
				h.Zone = zone
			}
		},
		"days": func(n yamlread.Node) {
			n.Items(func(day yamlread.Node) {
				if name, ok := day.OneOf(days...); ok {
					for i := range days {
						h.Days[i] = h.Days[i] || days[i] == name
					}
				}
			})
		},
		"from": func(n yamlread.Node) { h.From = clock(n) },
		"to":   func(n yamlread.Node) { h.To = clock(n) },
	})
	if h.Zone == nil || h.Days == [7]bool{} || h.From >= h.To {
		v.Fail("hours", `write { zone: Europe/Berlin, days: [monday, friday], from: "09:00", to: "17:00" }`, "zone, days, from and to are all needed, and from is before to")
		return
	}
	s.facts.Hours = h
}

// clock reads a time of the day, of which 24:00 is the end.
func clock(v yamlread.Node) time.Duration {
	s, ok := v.Text()
	if !ok {
		return 0
	}
	if s == "24:00" {
		return 24 * time.Hour
	}
	t, err := time.Parse("15:04", s)
	v.Check("clock", `write a time of the day such as "17:30"`, err)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

func (s *shown) addresses(v yamlread.Node) {
	v.Items(func(n yamlread.Node) {
		if text, ok := n.Text(); ok {
			a, err := netip.ParseAddr(text)
			if n.Check("address", "write an address such as 10.1.2.3", err) {
				s.facts.Addresses = append(s.facts.Addresses, a)
			}
		}
	})
}

// by reads the one principal that approved or signed.
func by(to *string) func(yamlread.Node) {
	return func(n yamlread.Node) {
		if text, ok := n.Text(); ok {
			n.Check("principal", "write who it is, such as operator://ann", policy.CheckPrincipal(text))
			*to = text
		}
	}
}

func (s *shown) approval(v yamlread.Node) {
	var a approval
	v.Object(yamlread.Fields{
		"by": by(&a.By), "role": func(n yamlread.Node) { n.Into(&a.Role) },
		"of": func(n yamlread.Node) {
			if n.Into(&a.of); a.of != "" {
				n.Check("address-pattern", "", grant.Check(a.of))
			}
		},
		"actions": func(n yamlread.Node) { a.Actions = n.Texts() },
		"at":      func(n yamlread.Node) { a.At = moment(n) },
		"until":   func(n yamlread.Node) { a.Until = moment(n) },
	})
	if a.By == "" || a.Role == "" || a.of == "" || len(a.Actions) == 0 || a.At.IsZero() {
		v.Fail("missing-key", `write { by: operator://ann, role: owner, of: "@acme/*", actions: ["storage:push"], at: 2026-05-01T09:30:00Z }`, "by, role, of, actions and at are all needed")
		return
	}
	s.approvals = append(s.approvals, a)
}

func (s *shown) signature(v yamlread.Node) {
	var g policy.Signature
	v.Object(yamlread.Fields{
		"by": by(&g.By), "role": func(n yamlread.Node) { n.Into(&g.Role) },
		"sha256": func(n yamlread.Node) {
			var err error
			if n.Into(&g.SHA256); len(g.SHA256) != 64 || strings.Trim(g.SHA256, "0123456789abcdef") != "" {
				err = errors.New("is no digest")
			}
			n.Check("digest", "write what sha256sum says of the file", err)
		},
	})
	if g.By == "" || g.Role == "" || g.SHA256 == "" {
		v.Fail("missing-key", "write { by: operator://ann, role: owner, sha256: ... }", "by, role and sha256 are all needed")
		return
	}
	s.facts.Signatures = append(s.facts.Signatures, g)
}
