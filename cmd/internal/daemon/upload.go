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
	"github.com/wsmount/wsmount/cmd/internal/progress"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/fs"
)

// Upload sends the changes and unpushed commits of a tree's working copies, without a mount. It
// takes no longer than Options.StopTimeout. Changes that could not be sent are in the result,
// and stay. show, if not nil, is given the source of the progress, until its stop is called.
func Upload(ctx context.Context, tree *Tree, o Options, show func(progress.Source) (stop func())) (out control.EventResult, err error) {
	out = control.EventResult{Schema: control.SyncSchema, Event: control.EventUpload}
	d := unmounted(tree, o)
	d.uploads = true
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
	if show != nil {
		defer show(unmountedSource{d})()
	}
	for i := len(d.parts) - 1; i >= 0; i-- {
		p := d.parts[i]
		out.Parts++
		did, err := p.syncer.upload(d.drain)
		out.Add(did)
		if err != nil {
			p.syncer.failed(err, &out)
		}
	}
	if err := d.closeVolumes(); err != nil && len(out.Failed) == 0 && out.Exit == 0 {
		out.Fail(err.Error(), int(exit.Unsafe), "")
	}
	return out, nil
}

// unmountedSource is the progress of a daemon without a mount.
type unmountedSource struct{ d *Daemon }

// Status implements progress.Source: the status has only the parts and their sums.
func (s unmountedSource) Status(context.Context) (out control.Status, _ error) {
	for _, p := range s.d.parts {
		out.Parts = append(out.Parts, p.status(nil, 0))
	}
	sum(&out)
	return out, nil
}

// Work implements progress.Source.
func (s unmountedSource) Work(context.Context) (control.Work, error) { return s.d.Work(), nil }

// unmounted is the daemon of a tree that it does not mount.
func unmounted(tree *Tree, o Options) *Daemon {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Copy.Fetches, o.Copy.Secrets = cache.NewFetchBudget(0), &cache.Secrets{}
	return &Daemon{tree: tree, opts: o, room: room.New(tree.StateRoot), byName: map[string]*part{}, state: control.Starting,
		log: slog.New(slog.DiscardHandler), bus: lifecycle.New(lifecycle.Options{})}
}

// OpenCopy opens the working copy of a part without a mount. end sends the changes made in
// it as an unmount does, within Options.StopTimeout.
func OpenCopy(ctx context.Context, tree *Tree, s Source, o Options) (_ fs.Volume, end func() error, err error) {
	d := unmounted(tree, o)
	d.drain, d.giveUp = context.WithCancel(context.Background())
	end = func() error {
		defer time.AfterFunc(o.StopTimeout, d.giveUp).Stop()
		return errors.Join(d.notSafe(d.closeVolumes()), d.shut())
	}
	p := &part{Source: s, name: s.Name}
	p.Optional = false
	if err = d.lock(ctx); err == nil {
		err = d.openPart(ctx, p)
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	d.parts, d.byName[p.name] = append(d.parts, p), p
	d.room.Opened()
	d.setState(control.Ready)
	d.opened()
	return p.volume, end, nil
}

// openCopies opens the working copies that exist, or whose clone exists: then a new one sends the
// clone's commits.
func (d *Daemon) openCopies(ctx context.Context) error {
	for _, s := range d.tree.Sources {
		place, err := state.Place(d.tree.StateRoot, s.Place[0], s.Place[1], s.Place[2])
		if err != nil || !s.Cached || !exists(filepath.Join(place, state.CopyName)) && !exists(filepath.Join(place, state.CloneName)) {
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
