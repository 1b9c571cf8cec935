package memoryserver

import (
	"context"
	"net"
	"time"

	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
	"github.com/wsmount/wsmount/providers/memory/wire"
)

// Control reaches the Switches and the content of what a Server serves, from
// another process. What it does is not delayed, cut or counted. Its own calls
// fail with ErrUnavailable when the server is gone, and with ErrUnsupported
// when what is served is not of this package.
type Control struct{ conn *wire.Conn }

// DialControl reaches the server that Dial reaches.
func DialControl(ctx context.Context, network, address string) (*Control, error) {
	return DialCloneControl(ctx, network, address, "", "")
}

// DialCloneControl is DialControl for the clone that DialClone reaches: the switches are
// those of the clone, the content is that of its branch at the remote.
func DialCloneControl(ctx context.Context, network, address, clone, branch string) (*Control, error) {
	c := wire.NewConn(wire.Clone{Name: clone, Branch: branch}, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	})
	if _, err := wire.Ask[providers.Capabilities](ctx, c, wire.Request{Method: wire.MethodHello}, wire.Nothing{}, providers.Body{}); err != nil {
		c.Close()
		return nil, err
	}
	return &Control{c}, nil
}

// control is what a Control asks for; Verb says which fields are meant.
type control struct {
	Verb     string
	Method   providers.Method
	N        int
	Kind     string
	Delay    time.Duration
	Hang     bool
	Content  []byte
	Absent   bool // gob does not tell empty content from none
	Revision providers.Revision
}

type controlAnswer struct {
	Lines    []string
	Calls    map[providers.Method]int
	Branches map[string]providers.Revision
	Log      []memoryrepo.Logged
}

const methodControl providers.Method = "control"

func (c *Control) ask(ctx context.Context, l providers.Locator, q control) (controlAnswer, error) {
	return wire.Ask[controlAnswer](ctx, c.conn, wire.Request{Method: methodControl, Locator: l}, q, providers.Body{})
}

func (c *Control) do(ctx context.Context, q control) error {
	_, err := c.ask(ctx, providers.Locator{}, q)
	return err
}

// Delay is Switches.Delay.
func (c *Control) Delay(ctx context.Context, d time.Duration) error {
	return c.do(ctx, control{Verb: "delay", Delay: d})
}

// Cut is Switches.Cut.
func (c *Control) Cut(ctx context.Context, hang bool) error {
	return c.do(ctx, control{Verb: "cut", Hang: hang})
}

// Connect is Switches.Connect.
func (c *Control) Connect(ctx context.Context) error { return c.do(ctx, control{Verb: "connect"}) }

// Fail is Switches.Fail, with one of the kinds of package providers.
func (c *Control) Fail(ctx context.Context, m providers.Method, n int, kind error) error {
	return c.do(ctx, control{Verb: "fail", Method: m, N: n, Kind: providers.KindOf(kind).Name})
}

// Lose is Switches.Lose.
func (c *Control) Lose(ctx context.Context, m providers.Method, n int) error {
	return c.do(ctx, control{Verb: "lose", Method: m, N: n})
}

// Clear is Switches.Clear.
func (c *Control) Clear(ctx context.Context) error { return c.do(ctx, control{Verb: "clear"}) }

// Calls is Switches.Calls.
func (c *Control) Calls(ctx context.Context) (map[providers.Method]int, error) {
	a, err := c.ask(ctx, providers.Locator{}, control{Verb: "calls"})
	return a.Calls, err
}

// Tamper is Provider.Tamper, or Remote.Tamper for the clone's branch.
func (c *Control) Tamper(ctx context.Context, l providers.Locator, content []byte) error {
	_, err := c.ask(ctx, l, control{Verb: "tamper", Content: content, Absent: content == nil})
	return err
}

// TamperMkdir is Provider.TamperMkdir; ErrUnsupported for a Remote.
func (c *Control) TamperMkdir(ctx context.Context, l providers.Locator) error {
	_, err := c.ask(ctx, l, control{Verb: "mkdir"})
	return err
}

// Dump is Provider.Dump, or Remote.Dump for the clone's branch.
func (c *Control) Dump(ctx context.Context) ([]string, error) {
	a, err := c.ask(ctx, providers.Locator{}, control{Verb: "dump"})
	return a.Lines, err
}

// Branches is Remote.Branches.
func (c *Control) Branches(ctx context.Context) (map[string]providers.Revision, error) {
	a, err := c.ask(ctx, providers.Locator{}, control{Verb: "branches"})
	return a.Branches, err
}

// Reset is Remote.Reset for the clone's branch.
func (c *Control) Reset(ctx context.Context, to providers.Revision) error {
	return c.do(ctx, control{Verb: "reset", Revision: to})
}

// Log is Remote.Log for the clone's branch.
func (c *Control) Log(ctx context.Context) ([]memoryrepo.Logged, error) {
	a, err := c.ask(ctx, providers.Locator{}, control{Verb: "log"})
	return a.Log, err
}

// Close lets go of the server.
func (c *Control) Close() { c.conn.Close() }

// controlled is what the switches and the content of a request belong to.
type controlled struct {
	switches *memory.Switches
	store    *memory.Provider   // of one store,
	remote   *memoryrepo.Remote // or this
	branch   string
}

// obey does what a Control asks for.
func (c controlled) obey(l providers.Locator, q control) (a controlAnswer, err error) {
	if c.switches == nil {
		return a, providers.ErrUnsupported
	}
	switch q.Verb {
	case "delay":
		c.switches.Delay(q.Delay)
	case "cut":
		c.switches.Cut(q.Hang)
	case "connect":
		c.switches.Connect()
	case "fail":
		c.switches.Fail(q.Method, q.N, wire.KindNamed(q.Kind))
	case "lose":
		c.switches.Lose(q.Method, q.N)
	case "clear":
		c.switches.Clear()
	case "calls":
		a.Calls = c.switches.Calls()
	default:
		return c.obeyContent(l, q)
	}
	return a, nil
}

func (c controlled) obeyContent(l providers.Locator, q control) (a controlAnswer, err error) {
	content := append([]byte{}, q.Content...)
	if q.Absent {
		content = nil
	}
	if c.remote == nil {
		switch q.Verb {
		case "tamper":
			return a, c.store.Tamper(l, content)
		case "mkdir":
			return a, c.store.TamperMkdir(l)
		case "dump":
			a.Lines = c.store.Dump()
			return a, nil
		}
		return a, providers.ErrUnsupported
	}
	switch q.Verb {
	case "tamper":
		return a, c.remote.Tamper(c.branch, l, content)
	case "dump":
		a.Lines = c.remote.Dump(c.branch)
	case "branches":
		a.Branches = c.remote.Branches()
	case "reset":
		return a, c.remote.Reset(c.branch, q.Revision)
	case "log":
		a.Log = c.remote.Log(c.branch)
	default:
		return a, providers.ErrUnsupported
	}
	return a, nil
}
