package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
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
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

// Host is this machine, as configured by the command line.
type Host struct {
	Backends  *seam.Registry
	Settings  seam.Settings
	ReadOnly  bool // nothing may be changed, in any backend
	StateRoot func() (string, error)
	// Request asks for the workspace of the command line as mount does. close releases
	// the resources that it and the tree need.
	Request func() (r daemon.Request, close func(), err error)
	Rules   func() (r Rules, close func(), err error) // reads them, and opens the audit log
	// Copy opens the working copy of a part without a mount. end sends the changes that its
	// policy wants sent, and its error names those that are not.
	Copy func(ctx context.Context, tree *daemon.Tree, s daemon.Source) (v wsfs.Volume, end func() error, err error)
}

// openWorkspace opens a workspace by an address, the path of a manifest, or a path in a mount: its
// parts through their mounts if they have some, else their stores. reads: only for reading.
func (h Host) openWorkspace(ctx context.Context, name string, reads bool) (seam.Backend, error) {
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
	return p, nil
}

// OpenPlace opens the place in a mount that the path name leads to; its daemon applies its rules
// as to any program. nil: name is not in a mount. The caller closes it.
func (h Host) OpenPlace(ctx context.Context, name string) (seam.Backend, error) {
	m, err := h.findPlace(ctx, name, false)
	if m == nil {
		return nil, err // a nil *mounted in the interface would not be nil
	}
	if err := h.apart(m); err != nil {
		return nil, err
	}
	return m, nil
}

// apart refuses, and closes, a place in a mount that leads to the operator's own space.
func (h Host) apart(m *mounted) error {
	at, _ := m.at(m.dir) // which is known to be in the mount
	for _, dir := range append(m.parts.behind(at), m.dir) {
		if err := h.Settings.CheckApart(dir); err != nil {
			return errors.Join(err, m.Close())
		}
	}
	return nil
}

func (h Host) findPlace(ctx context.Context, name string, plain bool) (*mounted, error) {
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
	return through(r, mounts.Look(ctx, r), place, plain)
}

// openCheckout opens a directory that contains a project's state, through its mount if it has
// one. In a foreign mount no condition can be kept.
func (h Host) openCheckout(ctx context.Context, dir string) (seam.Backend, error) {
	m, foreign, err := h.inMount(ctx, dir, false)
	if m != nil {
		return m, h.apart(m)
	}
	if err == nil {
		err = h.Settings.CheckApart(dir)
	}
	if err != nil {
		return nil, err
	}
	b, err := all.Directory(dir)
	if foreign != nil && err == nil {
		b = seam.Unguarded(b, foreign)
	}
	return b, err
}

// Mounted is seam.Settings.Mounted of this machine. A mount that sends later than a write
// returns cannot check a condition: only the locks in its content exist.
func (h Host) Mounted(ctx context.Context, dir string, plain bool) (_ seam.Conditional, foreign, err error) {
	m, foreign, err := h.inMount(ctx, dir, plain)
	if m == nil {
		return nil, foreign, err
	}
	if at, _ := m.at(m.dir); later(m.parts.part(at)) { // which is known to be in the mount
		return nil, nil, m.Close()
	}
	return m, nil, nil
}

// inMount is findPlace. A mount is foreign if another user made it, if it is seen in a sandbox,
// or if its state directory is another: then foreign is why no condition is kept there.
func (h Host) inMount(ctx context.Context, dir string, plain bool) (m *mounted, foreign, err error) {
	m, err = h.findPlace(ctx, dir, plain)
	var unknown *exit.Error
	if errors.As(err, &unknown) && unknown.Code == exit.Unresolvable {
		return nil, exit.New(exit.Failed, "nothing keeps writers apart there: %s: %w", unknown.What, providers.ErrUnsupported).Hint("%s", unknown.Advice), nil
	}
	return m, nil, err
}

// shown is a part of a workspace as a mount shows it.
type shown struct {
	mount *state.Record
	at    control.Status
	part  control.Part
	seen  bool // this program sees it at its place, and no other mount over it
}

func (m shown) place() string { return filepath.Join(m.mount.Mountpoint, m.part.At) }

// look sets seen.
func (m *shown) look(t mountpoint.Table) {
	in, _ := t.Around(m.place())
	m.seen = in.Path == m.mount.Mountpoint && t.Shows(in.Path, m.mount.Device)
}

// mountOf finds a mount that shows a part of a tree, preferably a writable one.
// nil: there is none.
func mountOf(ctx context.Context, tree *daemon.Tree, s daemon.Source) (*shown, error) {
	place, err := state.Place(tree.StateRoot, s.Place[0], s.Place[1], s.Place[2])
	if err != nil {
		return nil, err
	}
	records, err := state.List(tree.StateRoot)
	if err != nil {
		return nil, err
	}
	table, err := mountpoint.ReadTable()
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r *state.Record) bool { return !r.Alive() })
	var found *shown
	for i, status := range mounts.LookAll(ctx, records) {
		for _, p := range status.Parts {
			as := shown{mount: records[i], at: status, part: p}
			as.look(table)
			if as.shows(tree, s, place) && (found == nil || p.ReadOnly == "") {
				found = &as
			}
		}
	}
	return found, nil
}

// shows reports whether it shows s: the working copy of its store, which only its holder can
// change, or its directory in a mount of its own workspace. A mount of another workspace has
// other rules; writes to the directory beside it take the same lock.
func (m shown) shows(tree *daemon.Tree, s daemon.Source, place string) bool {
	switch p := m.part; {
	case p.Unavailable != "":
		return false
	case p.Copy != nil:
		return p.Copy.StateDir == place || strings.HasPrefix(p.Copy.StateDir, place+".")
	case s.Path == "" || s.Cached:
		return false
	default:
		return m.seen && p.Path == s.Path && p.Moved == "" && p.Name == s.Name && m.stray(tree, s) == ""
	}
}

// stray is the path of a workspace mounted inside the part that the tree does not have, or
// empty. In a mount of the part's own workspace, the mount's user asked for it.
func (m shown) stray(tree *daemon.Tree, s daemon.Source) string {
	if m.part.At == "/" {
		return ""
	}
	for _, p := range m.at.Parts {
		rel, outside := mounts.Relative(m.part.At, p.At)
		if outside != nil || rel == "" || p.Unavailable != "" {
			continue
		}
		at := path.Join(s.At, rel)
		if !slices.ContainsFunc(tree.Sources, func(s daemon.Source) bool { return s.At == at }) {
			return p.At
		}
	}
	return ""
}

// check refuses a mount of a working copy that is hidden by another mount at its place.
func (m shown) check(tree *daemon.Tree, s daemon.Source) error {
	if err := mounts.Usable(m.at); err != nil {
		return err
	}
	if !m.seen {
		return exit.New(exit.Unreachable, "the working copy of %s is mounted at %s, and something else is seen there", s.Name, m.place()).
			Hint("see `wsmount status %s`", m.at.Mountpoint)
	}
	if at := m.stray(tree, s); at != "" {
		return exit.New(exit.Unsafe, "the working copy of %s is mounted at %s of another workspace, with a third one in it, at %s", s.Name, m.part.At, at).
			Hint("unmount %s, or use the path in it in place of the address", m.at.Mountpoint)
	}
	return nil
}

// openMounted opens a part through a mount that shows it; nil: none does. The mount keeps the
// rules of the time when it was made, and of the workspace around it, so those of the part are
// applied as well.
func (h Host) openMounted(ctx context.Context, tree *daemon.Tree, s daemon.Source) (seam.Backend, error) {
	found, err := mountOf(ctx, tree, s)
	if found == nil {
		return nil, err
	}
	if err := found.check(tree, s); err != nil {
		return nil, err
	}
	m, err := through(found.mount, found.at, found.place(), false)
	if err == nil {
		err = h.apart(m)
	}
	if err != nil {
		return nil, err
	}
	g := &guarded{Backend: m, readOnly: s.ReadOnly, governing: s.Governing, real: m.real}
	if s.Cached && !slices.Equal(s.Exclude, found.part.Exclude) {
		g.exclude, err = excluded(s)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return g, nil
}

func excluded(s daemon.Source) (*mountspec.ExcludeSet, error) {
	set, err := mountspec.CompileExclude(s.Exclude)
	if err != nil {
		return nil, exit.New(exit.Manifest, "%s: %w", s.Name, err).Hint("correct storage.exclude of its manifest")
	}
	return set, nil
}

// openPart opens the store of a part. With reads, things that only changes need may be
// missing, such as a vault's lock.
func (h Host) openPart(ctx context.Context, tree *daemon.Tree, s daemon.Source, reads bool) (seam.Backend, error) {
	if s.Unavailable != "" {
		return nil, exit.New(exit.Unreachable, "the part at /%s is not there: %s", s.At, s.Unavailable).Hint("see `wsmount resolve`")
	}
	if b, err := h.openMounted(ctx, tree, s); b != nil || err != nil {
		return b, err
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
	if reads {
		s.ReadOnly = cmp.Or(s.ReadOnly, "it is only read")
	}
	g := &guarded{readOnly: s.ReadOnly, governing: append(slices.Clone(s.Governing), controlDir)}
	var err error
	if s.Cached { // a directory is no copy: its excluded files are its own
		g.exclude, err = excluded(s)
	}
	if err == nil {
		g.Backend, err = tree.Store(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// controlDir is the directory that a mount shows in the root of each part, and that no store has.
const controlDir = ".wsmount"

const (
	// copyLimit is how long a call waits for other holders of the same working copy:
	// they may have much to send.
	copyLimit = 5 * time.Minute
	copyPause = 20 * time.Millisecond
)

// openCopy opens a part whose changes are gathered into commits, by its working copy alone;
// other calls wait for their turn. If it is mounted meanwhile, the mount is used.
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
			return &guarded{Backend: newUnserved(v, copyPromises(s.Provider, true), s.Overwrites(), finish), readOnly: s.ReadOnly, governing: governing}, nil
		}
		var locked *state.LockedError
		if !errors.As(err, &locked) || time.Now().After(end) {
			return nil, err
		}
		if b, err := h.openMounted(ctx, tree, s); b != nil || err != nil {
			return b, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(copyPause):
		}
	}
}

// checkSent refuses a store if a working copy of it has unsent changes: reads would be old,
// and writes would conflict with them.
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
