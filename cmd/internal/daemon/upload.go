package daemon

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
)

// Upload sends what the working copies of a tree hold, commits that are not pushed
// too, without a mount. It
// takes no longer than Options.StopTimeout. What could not be sent is in the
// result, and stays.
func Upload(ctx context.Context, tree *Tree, o Options) (out control.EventResult, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	out = control.EventResult{Schema: control.SyncSchema, Event: control.EventUpload}
	o.Copy.Fetches, o.Copy.Secrets = cache.NewFetchBudget(0), &cache.Secrets{}
	d := &Daemon{tree: tree, opts: o, room: room.New(tree.StateRoot), byName: map[string]*part{}, state: control.Starting, uploads: true, log: slog.New(slog.DiscardHandler)}
	d.bus = lifecycle.New(lifecycle.Options{})
	d.drain, d.giveUp = context.WithTimeout(ctx, o.StopTimeout)
	defer d.giveUp()
	defer func() { err = errors.Join(err, d.shut()) }()
	if err := d.lock(ctx); err != nil {
		return out, err
	}
	if err := d.openCopies(ctx); err != nil {
		return out, errors.Join(err, d.closeVolumes())
	}
	d.setState(control.Ready)
	for i := len(d.parts) - 1; i >= 0; i-- {
		p := d.parts[i]
		out.Parts++
		did, err := p.syncer.upload(d.drain)
		out.Add(did)
		if err != nil {
			out.Fail(err.Error(), int(codeOf(err)))
		}
	}
	if err := d.closeVolumes(); err != nil && len(out.Failed) == 0 && out.Exit == 0 {
		out.Fail(err.Error(), int(exit.Unsafe))
	}
	return out, nil
}

// openCopies opens the working copies that are there already.
func (d *Daemon) openCopies(ctx context.Context) error {
	for _, s := range d.tree.Sources {
		place, err := state.Place(d.tree.StateRoot, s.Place[0], s.Place[1], s.Place[2])
		if err != nil || !s.Cached || !exists(filepath.Join(place, state.CopyName)) {
			continue
		}
		p := &part{Source: s}
		p.Optional = false
		p.name = d.uniqueName(s)
		if err := d.openPart(ctx, p); err != nil {
			return err
		}
		d.parts, d.byName[p.name] = append(d.parts, p), p
	}
	d.room.Opened()
	if len(d.parts) == 0 {
		return exit.New(exit.Unresolvable, "%s has no working copy here", d.tree.Name).Hint("`wsmount recover` lists those that there are")
	}
	return nil
}
