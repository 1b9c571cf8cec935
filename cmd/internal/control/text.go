package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/bytesize"
)

// Text returns the place of a part's bytes, and its kind; "" for a local place.
func (s *Store) Text() (what, text string) {
	switch {
	case s == nil:
		return "", ""
	case s.Repository != "":
		return "repository", strings.TrimSuffix(s.Endpoint, "/") + "/" + s.Repository
	case s.Prefix != "":
		return "bucket", s.Bucket + ", prefix " + s.Prefix + ", at " + cmp.Or(s.Endpoint, "its own service")
	}
	return "bucket", s.Bucket + ", at " + cmp.Or(s.Endpoint, "its own service")
}

// Text describes the downloads under way; "" if there are none.
func (f Fetching) Text() string {
	if f.Used == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of %s at most", bytesize.Text(f.Used), bytesize.Text(f.Limit))
	if f.Waiting > 0 {
		text += fmt.Sprintf(", %d wait", f.Waiting)
	}
	return text
}

// Text says whether the kernel itself reads and writes local files.
func (p Passthrough) Text() string {
	if p.On {
		return "reads and writes local files itself (passthrough)"
	}
	return "passthrough is off: " + p.Reason
}

// Text says how changes by others are noticed; "" if they are not.
func (w Watch) Text() string {
	if w.State == "off" || w.State == "" {
		return ""
	}
	text := fmt.Sprintf("%s, %d directories", w.State, w.Directories)
	if w.Directories == 1 {
		text = w.State + ", 1 directory"
	}
	if w.Reason != "" {
		text += " (" + w.Reason + ")"
	}
	return text
}

// RequestsText lists the requests to the store's service, the most frequent first.
func (c *Copy) RequestsText() string {
	var sent, received int64
	var verbs []string
	for verb, n := range c.Requests {
		verbs, sent, received = append(verbs, verb), sent+n.Sent, received+n.Received
	}
	if len(verbs) == 0 {
		return ""
	}
	slices.SortFunc(verbs, func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Requests[b].Count, c.Requests[a].Count), cmp.Compare(a, b))
	})
	for i, verb := range verbs {
		verbs[i] = fmt.Sprintf("%d %s", c.Requests[verb].Count, verb)
	}
	return fmt.Sprintf("%s; %s sent, %s received", strings.Join(verbs, ", "), bytesize.Text(sent), bytesize.Text(received))
}

// A Reason is why a part is restricted or fails.
type Reason struct {
	At     string `json:"at" jsonschema:"the path of the part in the mount"`
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Reasons are the reasons why a part cannot be read, written or sent now.
func (p Part) Reasons() (all []Reason) {
	say := func(what, why string) {
		if why != "" {
			all = append(all, Reason{p.At, what, why})
		}
	}
	say("not available", p.Unavailable)
	say("closed", p.Closed)
	say("read-only", p.ReadOnly)
	if c := p.Copy; c != nil {
		for _, h := range c.Halted {
			say("stopped until it is confirmed", h)
		}
		for _, f := range c.Failing {
			say(f.Activity+" fails", f.Error)
		}
		if c.PushFails != nil {
			say("push fails", c.PushFails.Error)
		}
		say("a pull waits", c.PutOff)
	}
	return all
}
