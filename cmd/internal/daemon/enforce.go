package daemon

import (
	"cmp"
	"context"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/inforce"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// underPolicy returns the parts as package inforce takes them.
func (d *Daemon) underPolicy() (out []inforce.Part) {
	for _, p := range d.parts {
		u := inforce.Part{Name: p.name, At: p.At, Workspace: p.resolved}
		if w, ok := p.volume.(*workingCopy); ok {
			u.Acts, u.Allowed = w.acts, w.syncer.allowedAgain
		}
		out = append(out, u)
	}
	return out
}

// enforce keeps the policies of the parts in force from now on, and adds notes
// when other policies were accepted.
func (d *Daemon) enforce() error {
	ctx, cancel := context.WithCancel(context.Background())
	d.onClose(func() error { cancel(); return nil }) // does not wait: its reads may hang on a disk
	go d.outdated.Watch(ctx, d.underPolicy(), d.tree.host.Outdated, func(notes []string) {
		for _, n := range notes {
			d.log.Warn("a person should know", "note", n)
		}
		d.kick.raise()
	})
	if !inforce.Vary(d.underPolicy(), policy.Actions()...) {
		return nil
	}
	if err := d.openAudit(); err != nil {
		return err
	}
	d.onClose(inforce.Start(d.underPolicy(), inforce.Options{Restrict: d.restrict, Audit: d.audit, Now: d.opts.Now, Log: d.log}).Stop)
	return nil
}

func (d *Daemon) restrict(name string, a fs.Access) {
	d.server.Restrict(name, a)
	d.byName[name].access.Store(&a)
	d.kick.raise()
}

// inForce is the access that the policy gives programs now.
func (p *part) inForce() fs.Access {
	if a := p.access.Load(); a != nil {
		return *a
	}
	return fs.Access{}
}

// readOnly is the reason why nothing in the part may be changed now, or empty.
func (p *part) readOnly() string { return cmp.Or(p.ReadOnly, p.inForce().ReadOnly) }

// closed is the reason why nothing in the part may be opened now, or empty.
func (p *part) closed() string { return p.inForce().Closed }

// mayRead refuses to show the content of a part that is closed.
func (p *part) mayRead() error {
	if why := p.closed(); why != "" {
		return exit.New(exit.Denied, "%s may not be read: %s", p.Name, why).Hint("ask its owner for a grant of storage:read")
	}
	return nil
}
