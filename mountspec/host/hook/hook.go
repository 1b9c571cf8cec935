// Package hook reads where the host wants problems of a mount reported: to webhooks, and to
// programs. It reads the host configuration, and knows no manifest: no manifest can
// have anything sent, or run.
//
//	var hooks []hook.Hook
//	fields := yamlread.Fields{"notify": hook.Read(&hooks)}
package hook

import (
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/program"
	"github.com/wsmount/wsmount/mountspec/host/yamlread"
)

// Events that may be reported.
const (
	Conflict   = "conflict"
	HeldBack   = "held-back"
	PullFailed = "pull-failed"
	PushFailed = "push-failed"
)

// Events lists them.
func Events() []string { return []string{Conflict, HeldBack, PullFailed, PushFailed} }

// A Hook is one webhook or one program.
type Hook struct {
	URL         string   // of a webhook; empty: it is of another form
	URLFrom     string   // slug of the secret that is the URL of a webhook
	Credentials string   // slug of the secret that a webhook gets as a bearer token; empty: none
	Command     []string // a program with its arguments
	On          []string // of Events; empty: all
	Timeout     time.Duration
}

// DefaultTimeout is Timeout where none is given.
const DefaultTimeout = 10 * time.Second

const mostSeconds = 300 // of Timeout

// Name is a name for people: it shows no path of a URL and no argument, which may be secret.
func (h Hook) Name() string {
	switch u, err := url.Parse(h.URL); {
	case h.URLFrom != "":
		return "webhook of secret " + h.URLFrom
	case len(h.Command) > 0:
		return "command " + h.Command[0]
	case err == nil:
		return "webhook " + endpoint.Origin(u)
	}
	return "webhook"
}

// Wants reports whether an event is sent to the hook.
func (h Hook) Wants(event string) bool { return len(h.On) == 0 || slices.Contains(h.On, event) }

// Files are the files that decide the effect of the hook, as far as it names them.
func (h Hook) Files() []string { return program.Program{Argv: h.Command}.Files() }

// Read reads a list of hooks.
func Read(to *[]Hook) func(yamlread.Node) {
	return func(v yamlread.Node) {
		v.Items(func(n yamlread.Node) {
			if h, ok := readOne(n); ok {
				*to = append(*to, h)
			}
		})
	}
}

func readOne(v yamlread.Node) (Hook, bool) {
	h, forms := Hook{Timeout: DefaultTimeout}, 0
	v.Object(yamlread.Fields{
		"webhook":      func(n yamlread.Node) { forms++; h.URL = endpoint.Read(n) },
		"webhook_from": func(n yamlread.Node) { forms++; n.Into(&h.URLFrom) },
		"command": func(n yamlread.Node) {
			if forms, h.Command = forms+1, n.Texts(); len(h.Command) == 0 {
				n.Fail("hook", "write a program with its arguments", "names nothing")
			}
		},
		"credentials": func(n yamlread.Node) { n.Into(&h.Credentials) },
		"on": func(n yamlread.Node) {
			n.Items(func(x yamlread.Node) {
				if event, ok := x.OneOf(Events()...); ok {
					h.On = append(h.On, event)
				}
			})
		},
		"timeout": func(n yamlread.Node) {
			seconds, ok := n.Integer()
			if h.Timeout = time.Duration(seconds) * time.Second; ok && seconds > mostSeconds {
				n.Fail("timeout", "write seconds, at most 300", "%d seconds are too many", seconds)
			}
		},
	})
	if forms != 1 {
		v.Fail("hook", "write one of webhook, webhook_from and command", "needs exactly one of them, has %d", forms)
		return h, false
	}
	if u, err := url.Parse(h.URL); err == nil && h.URL != "" && !CheckScheme(u, h.Credentials != "") {
		v.Fail("endpoint", "write a URL such as https://alerts.example.com/wsmount", "the URL must be one of https, or of http without credentials")
	}
	if h.Credentials != "" && len(h.Command) > 0 {
		v.Fail("hook", "remove credentials", "credentials are for a webhook")
	}
	return h, true
}

// CheckScheme reports whether a webhook may be called at a URL: credentials go only over an
// encrypted connection, or to this machine.
func CheckScheme(u *url.URL, credentials bool) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (!credentials || err == nil && addr.IsLoopback())
}
