package daemon

import (
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
)

// failing lists the failing background work of a working copy, and the requests that the store
// refuses: those that the volume keeps, and the clone that fetches content in advance.
func (w *workingCopy) failing() (all []control.Failing) {
	for _, f := range w.Status().Failing {
		says := f.Err.Error()
		switch missing := secrets.All(f.Err); {
		case len(missing) > 0 && f.Activity == cache.ActivityCredentials:
			says = missing[0].Line()
		case len(missing) > 0: // the reason is in the line of the credentials
			says = "secret " + missing[0].Name + " is not available"
		case errors.Is(f.Err, providers.ErrUnauthenticated): // only a person can end it
			says += "; " + checkSecret(w.syncer.name)
		}
		all = append(all, control.Failing{Activity: string(f.Activity), Since: f.Since, Last: f.Last, Times: f.Times, Error: says})
	}
	if c := w.clone(); c != nil && c.Error != "" {
		all = append(all, control.Failing{Activity: "clone", Since: c.Failing, Last: c.Failing, Error: c.Error})
	}
	return all
}

// failing is the failing work of the part's working copy; nil without one.
func (p *part) failing() []control.Failing {
	if w, ok := p.volume.(*workingCopy); ok {
		return w.failing()
	}
	return nil
}

// tellFailing describes the failing background work of the part, a text for each activity.
func (p *part) tellFailing() (texts []string) {
	for _, f := range p.failing() {
		texts = append(texts, fmt.Sprintf("%s: %s fails: %s", p.name, f.Activity, f.Error))
	}
	return texts
}

// Notes are notes for a person about the mount that has come up.
func (d *Daemon) Notes() []string {
	notes := d.tree.Notes[:len(d.tree.Notes):len(d.tree.Notes)]
	for _, p := range d.parts {
		notes = append(notes, p.tellFailing()...)
	}
	return notes
}
