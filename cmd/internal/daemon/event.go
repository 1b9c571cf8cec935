package daemon

import (
	"context"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/mountspec"
)

// Subscribe listens on the bus of this mount.
func (d *Daemon) Subscribe(name string, handler func(lifecycle.Event)) (stop func()) {
	return d.bus.On(name, handler)
}

// Event emits an event for the control API. An event to the whole mount reaches
// every part, one to a path reaches the part that is mounted there. Local
// stores have nothing to pull, commit or push: what they were given is in the
// store already, so that their part of the answer is zero.
func (d *Daemon) Event(_ context.Context, r control.EventRequest) (control.EventResult, error) {
	out := control.EventResult{Schema: control.EventSchema, Event: string(mountspec.Trigger(r.Name).Resolve())}
	reached, err := d.reach(r.At)
	if err != nil {
		return out, err
	}
	e := lifecycle.Event{Name: r.Name, Payload: r.Vars,
		Source: lifecycle.Source{Kind: lifecycle.SourceSession, ID: orElse(r.Vars["sessionId"], "wsmount-event")}}
	if !d.bus.Emit(e) {
		out.Skipped = "AIP-37 knows no event of this name"
		return out, nil
	}
	out.Parts = len(reached)
	return out, nil
}

// reach returns the parts that an event to a path concerns, the deepest first.
func (d *Daemon) reach(at string) ([]*part, error) {
	at = strings.Trim(at, "/")
	var out []*part
	for i := len(d.parts) - 1; i >= 0; i-- { // a part comes after the one that it is mounted in
		if p := d.parts[i]; at == "" || p.At == at {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, exit.New(exit.Unresolvable, "no part of this mount is at /%s", at).
			Hint("`wsmount status %s` lists the parts", d.tree.Mountpoint)
	}
	return out, nil
}
