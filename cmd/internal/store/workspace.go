package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/daemon"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/leftover"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

// Host is this machine, as the command line has it.
type Host struct {
	Backends  *seam.Registry
	Settings  seam.Settings
	StateRoot func() (string, error)
	// Request asks for the workspace of the command line as mount does. close ends what
	// answering it, and the tree, needs.
	Request func() (r daemon.Request, close func(), err error)
	Rules   func() (r Rules, close func(), err error) // reads them, and opens the audit log
	// Copy opens the working copy of a part without a mount. end sends what its policy wants
	// sent, and says what is not.
	Copy func(ctx context.Context, tree *daemon.Tree, s daemon.Source) (v wsfs.Volume, end func() error, err error)
}

// openWorkspace opens a workspace, by an address, the path of a manifest, or one in a mount:
// through its mount where it has one, else its stores, to read alone or to change them too.
func (h Host) openWorkspace(ctx context.Context, name string, reads bool) (seam.Backend, error) {
	root, err := h.StateRoot()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(name, "@") {
		b, err := h.OpenPlace(ctx, name)
		if b != nil || err != nil {
			return b, err
		}
	}
	request, closeRequest, err := h.Request()
	if err != nil {
		return nil, err
	}
	tree, err := daemon.Resolve(ctx, request)
	if err != nil {
		closeRequest()
		return nil, err
	}
	p := &parts{close: func() error { closeRequest(); return nil }}
	for _, s := range tree.Sources {
		at, err := seam.ParseLocator(s.At)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.all = append(p.all, &part{at: at, absent: s.Unavailable != "", has: gathered(s), open: func() (seam.Backend, error) { return h.openPart(ctx, tree, s, reads) }})
	}
	r, at, err := mountOf(ctx, root, tree.Sources[0])
	if err == nil && r == nil {
		return p, nil
	}
	var b seam.Backend
	if err == nil {
		b, err = h.apart(through(ctx, r, filepath.Join(r.Mountpoint, at)))
	}
	return b, errors.Join(err, p.Close()) // a mount has all parts
}

// OpenPlace opens the place in a mount that name is the path of, which its daemon then keeps as a
// mount does; nil: it is none. The caller closes it.
func (h Host) OpenPlace(ctx context.Context, name string) (seam.Backend, error) {
	m, err := h.findPlace(ctx, name)
	if m == nil {
		return nil, err // a nil *mounted would be no nil
	}
	return h.apart(m, err)
}

// apart refuses a place in a mount that leads to a space of the operator's own.
func (h Host) apart(m *mounted, err error) (seam.Backend, error) {
	if err != nil {
		return nil, err
	}
	for _, dir := range m.behind() {
		if err := h.Settings.CheckApart(dir); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

func (h Host) findPlace(ctx context.Context, name string) (*mounted, error) {
	table, err := mountpoint.ReadTable()
	if err != nil {
		return nil, err
	}
	place, err := table.Resolve(name)
	if err != nil {
		return nil, exit.New(exit.Usage, "%w", err).Hint("give an address, or a path that can be followed")
	}
	if m, ok := table.Around(place); !ok || !m.Ours() {
		return nil, nil
	}
	root, err := h.StateRoot()
	if err != nil {
		return nil, err
	}
	r, err := mounts.Find(root, place)
	if err != nil {
		return nil, err
	}
	return through(ctx, r, place)
}

// openCheckout opens a directory that a project's state lies in: through its mount where it has
// one. Of a mount that another user has made, or that is seen in a sandbox, no condition can be
// kept.
func (h Host) openCheckout(ctx context.Context, dir string) (seam.Backend, error) {
	m, err := h.findPlace(ctx, dir)
	var unknown *exit.Error
	foreign := errors.As(err, &unknown) && unknown.Code == exit.Unresolvable
	switch {
	case m != nil:
		return m, nil
	case err != nil && !foreign:
		return nil, err
	}
	b, err := all.Directory(dir)
	if foreign && err == nil {
		b = struct{ seam.Backend }{b}
	}
	return b, err
}

// mountOf finds a mount that serves a part, and where in it; one that can be written comes
// first. nil: there is none.
func mountOf(ctx context.Context, root string, s daemon.Source) (found *state.Record, at string, err error) {
	place, err := state.Place(root, s.Place[0], s.Place[1], s.Place[2])
	if err != nil {
		return nil, "", err
	}
	records, err := state.List(root)
	if err != nil {
		return nil, "", err
	}
	records = slices.DeleteFunc(records, func(r *state.Record) bool { return !r.Alive() })
	for i, status := range mounts.LookAll(ctx, records) {
		for _, p := range status.Parts {
			if serves(p, s, place) && (found == nil || p.ReadOnly == "") {
				found, at = records[i], p.At
			}
		}
	}
	return found, at, nil
}

// serves reports whether a part of a mount shows what s does: the same directory, or a
// working copy of the same store.
func serves(p control.Part, s daemon.Source, place string) bool {
	switch {
	case p.Unavailable != "":
		return false
	case p.Copy != nil:
		return p.Copy.StateDir == place || strings.HasPrefix(p.Copy.StateDir, place+".")
	}
	return s.Path != "" && !s.Cached && p.Path == s.Path
}

// openPart opens the store of a part. What only changes need may be missing where it is only
// read, such as a vault's lock.
func (h Host) openPart(ctx context.Context, tree *daemon.Tree, s daemon.Source, reads bool) (seam.Backend, error) {
	if s.Unavailable != "" {
		return nil, exit.New(exit.Unreachable, "the part at /%s is not there: %s", s.At, s.Unavailable).Hint("see `wsmount resolve`")
	}
	r, at, err := mountOf(ctx, tree.StateRoot, s)
	if err != nil {
		return nil, err
	}
	if r != nil {
		return h.apart(through(ctx, r, filepath.Join(r.Mountpoint, at)))
	}
	if s.Path != "" {
		if err := h.Settings.CheckApart(s.Path); err != nil {
			return nil, err
		}
	}
	if s.Mode == string(mountspec.ModePullPush) {
		return h.openCopy(ctx, tree, s)
	}
	if s.Cached {
		if err := checkSent(tree.StateRoot, s); err != nil {
			return nil, err
		}
	}
	var exclude *mountspec.ExcludeSet
	if s.Cached { // a directory is no copy of anything, and has all that is in it
		if exclude, err = mountspec.CompileExclude(s.Exclude); err != nil {
			return nil, exit.New(exit.Manifest, "%s: %w", s.Name, err).Hint("correct storage.exclude of its manifest")
		}
	}
	if reads {
		s.ReadOnly = cmp.Or(s.ReadOnly, "it is only read")
	}
	b, err := tree.Store(ctx, s)
	if err != nil {
		return nil, err
	}
	return &guarded{b, s.ReadOnly, append(slices.Clone(s.Governing), controlDir), exclude}, nil
}

// controlDir is what a mount has in the root of each part, and nobody else there.
const controlDir = ".wsmount"

const (
	// copyLimit is how long a call waits for others that have the same working copy: they
	// may have much to send.
	copyLimit = 5 * time.Minute
	copyPause = 20 * time.Millisecond
)

// openCopy opens a part whose changes are gathered into commits, by its working copy alone,
// of which others wait their turn. Where somebody mounts it meanwhile, it is used there.
func (h Host) openCopy(ctx context.Context, tree *daemon.Tree, s daemon.Source) (seam.Backend, error) {
	defer waiting.For("opening " + s.Name)()
	for end := time.Now().Add(copyLimit); ; {
		v, send, err := h.Copy(ctx, tree, s)
		if err == nil {
			finish := func() error {
				defer waiting.For("sending what " + s.Name + " has not sent yet")()
				return send()
			}
			governing := append(slices.Clone(s.Governing), controlDir, ".git")
			return &guarded{newUnserved(v, copyPromises(s.Provider, true), s.Overwrites(), finish), s.ReadOnly, governing, &mountspec.ExcludeSet{}}, nil
		}
		var locked *state.LockedError
		if !errors.As(err, &locked) || time.Now().After(end) {
			return nil, err
		}
		r, at, err := mountOf(ctx, tree.StateRoot, s)
		if err != nil {
			return nil, err
		}
		if r != nil {
			return h.apart(through(ctx, r, filepath.Join(r.Mountpoint, at)))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(copyPause):
		}
	}
}

// checkSent refuses a store that does not have all that was changed in a working copy of it:
// what is read would be old, and what is written in the way of that.
func checkSent(root string, s daemon.Source) error {
	dirs, err := state.Copies(root, s.Place[0], s.Place[1])
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		l, err := leftover.Inspect(dir, 1)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && !l.InUse && l.Empty():
		case err != nil:
			return exit.New(exit.Unsafe, "a working copy of %s cannot be read: %s: %w", s.Name, dir, err).Hint("%s", leftover.Advice(dir, err))
		case l.InUse:
			return exit.New(exit.Failed, "a working copy of %s is in use: %s", s.Name, dir).Hint("see `wsmount status`, and try again")
		default:
			return exit.New(exit.Unsafe, "a working copy of %s holds %s: %s", s.Name, l.Text(), dir).
				Hint("mount it, or: %s", leftover.Ways(dir, s.Place[2]))
		}
	}
	return nil
}
