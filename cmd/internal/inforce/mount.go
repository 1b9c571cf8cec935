package inforce

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// A Part is one part of a mount.
type Part struct {
	Name, At  string              // At without leading slash; "" is the root
	Workspace *host.Resolved      // nil: it is not available
	Acts      *Acts               // nil: nothing is counted
	Allowed   func(action string) // is told that an action is allowed again; may be nil
}

// Options of Start.
type Options struct {
	// Restrict limits programs in a part to an access. It must not block.
	Restrict func(part string, a fs.Access)
	Audit    *audit.Log
	Now      func() time.Time
	Log      *slog.Logger
}

// A Mount keeps the policies of its parts in force.
type Mount struct {
	o       Options
	parts   []Part
	watches []*Watch // by part; nil: its policy cannot change
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu  sync.Mutex // guards now
	now []fs.Access
}

// Vary reports whether a part's policy may change its answer while mounted, for
// any of the actions.
func Vary(parts []Part, actions ...string) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.Workspace != nil && p.Workspace.PolicyVaries(actions...) })
}

// Begun is the access of programs to the parts when the mount begins, by the policies'
// answers when it was resolved.
func Begun(parts []Part) []fs.Access {
	own := make([]fs.Access, len(parts))
	for i, p := range parts {
		if Vary(parts[i:i+1], policy.Actions()...) {
			own[i] = accessOf(p.Workspace.Decisions[policy.Read], p.Workspace.Decisions[policy.Write])
		}
	}
	return inherited(parts, own)
}

// Start keeps the policies of a mount's parts in force from now on, as far as they can
// change. Until then Begun holds.
func Start(parts []Part, o Options) *Mount {
	m := &Mount{o: o, parts: parts, watches: make([]*Watch, len(parts)), now: Begun(parts)}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	for i, p := range parts {
		if Vary(parts[i:i+1], policy.Actions()...) {
			m.watches[i] = NewWatch(p.Workspace.Decisions, WatchOptions{Evaluate: p.evaluate, Record: m.recordOf(p), Now: o.Now,
				Changed: func(d policy.Decision) { m.changed(p, d) }, Log: o.Log.With("workspace", p.Name)})
		}
	}
	for _, w := range m.watches { // after all are made: restrict reads them all
		if w != nil {
			m.running.Go(func() { w.Run(ctx) })
		}
	}
	return m
}

// Stop ends it. The last answers stay in force.
func (m *Mount) Stop() error {
	m.cancel()
	m.running.Wait()
	return nil
}

func (p Part) evaluate(action string, at time.Time) policy.Decision {
	return p.Workspace.Evaluate(action, at, p.Acts.Done())
}

func (m *Mount) recordOf(p Part) func(policy.Decision) error {
	return func(d policy.Decision) error {
		return m.o.Audit.Write(audit.DecisionOf(p.Workspace.Address.String(), d))
	}
}

func (m *Mount) changed(p Part, d policy.Decision) {
	m.restrict()
	if d.Allow && p.Allowed != nil {
		p.Allowed(d.Action)
	}
}

// restrict calls Restrict for each part whose access has changed.
func (m *Mount) restrict() {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := make([]fs.Access, len(m.parts))
	for i, w := range m.watches {
		if w != nil {
			own[i] = accessOf(w.Decision(policy.Read), w.Decision(policy.Write))
		}
	}
	for i, a := range inherited(m.parts, own) {
		if a != m.now[i] {
			m.now[i] = a
			m.o.Restrict(m.parts[i].Name, a)
		}
	}
}

func accessOf(read, write policy.Decision) (a fs.Access) {
	if !write.Allow {
		a.ReadOnly = "policy (" + text(write) + ")"
	}
	if !read.Allow {
		a.Closed = "policy (" + text(read) + ")"
	}
	return a
}

func text(d policy.Decision) string { return fmt.Sprintf("%s for %s", d.Reason, d.Principal) }

// inherited makes the parts inside a read-only part read-only too, whichever workspace
// mounts them there: nothing loosens a refusal.
func inherited(parts []Part, own []fs.Access) []fs.Access {
	out := make([]fs.Access, len(parts))
	for i := range parts {
		out[i] = own[i]
		for j := range parts {
			if i != j && out[i].ReadOnly == "" && own[j].ReadOnly != "" && lies(parts[i].At, parts[j].At) {
				out[i].ReadOnly = fmt.Sprintf("parent (it lies in /%s, which is read-only: %s)", parts[j].At, own[j].ReadOnly)
			}
		}
	}
	return out
}

func lies(at, dir string) bool { return dir == "" || strings.HasPrefix(at, dir+"/") }
