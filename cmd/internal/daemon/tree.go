package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/mountpoint"
	"github.com/wsmount/wsmount/cmd/internal/mounts"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/cmd/internal/stranded"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/host"
)

// A Source is one volume as the host resolved it, not opened yet.
type Source struct {
	Name       string // address of its workspace
	At         string // path in the mount without leading slash; "" is the root
	Provider   string
	Mode       string // sync mode
	Path       string // of a local store
	Store      *control.Store
	ReadOnly   string // why it is read-only now, or empty
	Stays      string // why it stays so while mounted; empty: policy may allow writes later
	Governing  []string
	Exclude    []string // patterns of paths that are not sent to the store
	Unverified bool
	Optional   bool
	Code       *control.Code // set if the workspace is a code project
	Authors    []control.Person
	Durability string
	missing    bool // the directory is not there yet

	Unavailable string // why an optional part cannot be resolved

	// Cached says that the volume is a working copy with a state directory at
	// Place (owner, slug, fingerprint) of its own.
	Cached bool
	Place  [3]string

	// Open opens the volume; nil together with Unavailable.
	Open func(ctx context.Context, e Env) (fs.Volume, error)

	resolved *host.Resolved // nil where it is Unavailable
}

// Overwrites reports whether the last change that is sent replaces the earlier changes of others.
func (s Source) Overwrites() bool {
	return s.resolved != nil && s.resolved.Storage.Sync.Conflict == mountspec.ConflictLastWriterWins
}

// A Tree says which volumes are to be mounted, and where. Resolving it changed nothing.
type Tree struct {
	Name            string // address of the root's workspace
	Owner, Slug     string
	Fingerprint     string
	Manifest        string
	Mountpoint      string // symbolic links followed
	StateRoot       string
	Unverified      bool
	Durability      string
	Principal       string
	Sources         []Source // the root first, every part after the one it lies in
	Notes           []string // for a person to read
	Stale           bool     // a mount without daemon lies at the mount point
	MountedReadOnly bool     // with Mounted: whether that mount is read-only
	Mounted         bool     // with Request.IfNotMounted: the workspace is mounted there already
	Explain         []host.Step

	host *host.Resolver
}

// Request asks for a tree.
type Request struct {
	Workspace      string // address, or path of a manifest or its directory
	Mountpoint     string
	StateDir       string // empty: the user's default
	Resolver       *host.Resolver
	Dir            string // the base of relative paths
	Trust          bool   // a path counts as registered
	Create         bool   // make the directory of a dev-local workspace that has none yet
	ReadOnly       bool
	Mounts         []mountspec.Mount
	SandboxMount   string // mount this path of the workspace's sandbox, not the workspace
	IfNotMounted   bool   // the same workspace at the same place is no error
	WriteBack      bool   // closes of canonical workspaces return early
	WorkingCopy    string // name of an additional working copy; empty: the usual one
	RequireDurable bool   // refuse a state directory that does not outlive the machine
	Getenv         func(string) string
}

// Resolve resolves a request and checks that the result can be mounted: it does
// every step of a mount but the mount itself. Without Request.Create it changes
// nothing. A tree that is returned with an error only shows how far it went.
func Resolve(ctx context.Context, r Request) (*Tree, error) {
	got, err := r.Resolver.Resolve(ctx, r.Workspace, host.ResolveOptions{Dir: r.Dir, Trust: r.Trust,
		ReadOnly: r.ReadOnly, Mounts: r.Mounts, Create: r.Create, SandboxMount: r.SandboxMount})
	if err != nil {
		return nil, Refusal(err)
	}
	t := &Tree{Name: got.Address.String() + got.Part, Owner: got.Address.Owner, Slug: got.Address.Slug + got.Part,
		Fingerprint: placeName(got.Fingerprint, r.WorkingCopy), host: r.Resolver,
		Manifest: got.Manifest, Unverified: !got.Verified, Principal: got.Principal, Explain: got.Explain}
	if err := t.findState(r); err != nil {
		return t, err
	}
	b := builder{tree: t, own: r.Resolver.Own(), copyName: r.WorkingCopy, writeBack: r.WriteBack}
	if err := b.add(got, ""); err != nil {
		return t, err
	}
	b.inherit()
	if err := t.checkDirectories(); err != nil {
		return t, err
	}
	if err := b.govern(); err != nil {
		return t, err
	}
	if r.Mountpoint == "" {
		return t, nil
	}
	t.Mountpoint = r.Mountpoint
	return t, t.checkPlace(ctx, r.IfNotMounted)
}

// Steps returns the steps that led to a tree, or to the error.
func Steps(t *Tree, err error) []host.Step {
	var e *host.Error
	switch {
	case t != nil:
		return t.Explain
	case errors.As(err, &e):
		return e.Steps
	}
	return nil
}

// findState chooses the state directory and says how long it lasts.
func (t *Tree) findState(r Request) (err error) {
	if t.StateRoot, err = state.Root(r.StateDir, r.Getenv); err != nil {
		return err
	}
	t.Durability = "disk"
	fsName, is := state.Volatile(t.StateRoot)
	if !is {
		return nil
	}
	t.Durability = "volatile: " + fsName
	if r.RequireDurable {
		return exit.New(exit.Unsafe, "the state directory %s lies on %s and does not outlive the machine", t.StateRoot, fsName).
			Hint("give --state-dir a directory on a disk")
	}
	t.note("durability is volatile: the state directory lies on %s", fsName)
	return nil
}

// checkDirectories refuses to show the state directory in the mount: a program that can
// write there has the control socket, the audit log and the unsaved content. It also
// refuses to change a directory that lies in a mount: see mountpoint.Outside.
func (t *Tree) checkDirectories() error {
	for _, s := range t.Sources {
		if s.Path != "" && s.Stays == "" {
			if err := mountpoint.Outside(s.Name, s.Path); err != nil {
				return err
			}
		}
		if s.Path != "" && mountpoint.Within(host.Real(t.StateRoot), s.Path) {
			return exit.New(exit.Denied, "%s: the state directory %s lies in its directory %s", s.Name, t.StateRoot, s.Path).
				Hint("give --state-dir a directory outside of every workspace")
		}
	}
	return nil
}

func (t *Tree) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// ReadOnly reports whether nothing in the whole tree can be changed while it is mounted.
func (t *Tree) ReadOnly() bool {
	return !slices.ContainsFunc(t.Sources, func(s Source) bool { return s.Stays == "" && s.Unavailable == "" })
}

// checkPlace refuses a mount point that cannot be mounted on, or that would make
// the daemon serve itself. With ifNotMounted, the same workspace may be mounted
// there, if its daemon answers.
func (t *Tree) checkPlace(ctx context.Context, ifNotMounted bool) error {
	place, stale, err := mountpoint.Check(t.Mountpoint)
	if place != "" {
		t.Mountpoint = place
	}
	t.Stale = stale
	if errors.Is(err, mountpoint.ErrMounted) && ifNotMounted && t.mountedThere() {
		gone, err := t.awaitOther(ctx)
		if gone { // it was unmounted meanwhile
			return t.checkPlace(ctx, ifNotMounted)
		}
		return err
	}
	if err != nil {
		return err
	}
	if strings.ContainsFunc(place, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return exit.New(exit.Usage, "the mount point's name has control characters").Hint("choose another name")
	}
	if mountpoint.Within(t.StateRoot, place) {
		return exit.New(exit.Usage, "the state directory %s lies inside the mount point", t.StateRoot).
			Hint("choose another mount point, or give --state-dir")
	}
	if f := t.host.Facts(); f != "" && mountpoint.Within(f, place) { // the daemon would ask itself
		return exit.New(exit.Usage, "the host's facts %s lie inside the mount point", f).Hint("choose another mount point, or keep them elsewhere")
	}
	for _, s := range t.Sources {
		if s.Path == "" || s.missing {
			continue
		}
		if err := mountpoint.Apart(place, s.Path); err != nil {
			return err
		}
	}
	return nil
}

// mountedThere reports whether this workspace is mounted at the mount point.
func (t *Tree) mountedThere() bool {
	table, err := mountpoint.ReadTable()
	if err != nil {
		return false
	}
	m, ok := table.At(t.Mountpoint)
	if !ok || !m.Ours() {
		return false
	}
	return m.Source == t.Name || filepath.IsAbs(m.Source) && mounts.Serving(t.StateRoot, t.Name, t.Mountpoint) != nil // with Options.Source, a path
}

// authorsOf returns the authors of a workspace's commits that its manifest and the host name.
func authorsOf(r *host.Resolved) (out []control.Person) {
	if r.Storage.Sync.Mode != mountspec.ModePullPush {
		return nil
	}
	primary, others, _ := mountspec.Authors(r.Identity)
	if c, ok := r.Storage.Config.(mountspec.GitHubConfig); ok && primary.Email == "" {
		primary.Email = c.DefaultCommitEmail
	}
	for _, p := range append([]mountspec.IdentityEntry{primary}, others...) {
		if p.Email != "" {
			out = append(out, control.Person{Name: p.Name, Email: p.Email})
		}
	}
	return out
}

// LostCommits returns why a part is not opened: unpushed commits are missing from its clone, or
// cannot be read there.
func (t *Tree) LostCommits(s Source) error {
	if !s.Cached {
		return nil
	}
	return stranded.LostCommits(t.StateRoot, s.Place)
}

// OthersUnsaved returns why a part is not mounted: another working copy of the same
// workspace holds content that no store has, and would be out of sight.
func (t *Tree) OthersUnsaved(s Source) error {
	if s.Open == nil {
		return nil
	}
	return stranded.Elsewhere(t.StateRoot, s.Place)
}

// placeName names the directory of a working copy: the fingerprint of its
// storage, and its own name where a workspace has several.
func placeName(fingerprint, name string) string {
	if name == "" {
		return fingerprint
	}
	return fingerprint + "." + name
}

// describe is the configuration for a debug bundle. It holds names and reasons;
// secrets never reach it.
func (t *Tree) describe(o Options) any {
	type source struct {
		Name, At, Provider, Mode, Path, ReadOnly, Unavailable string
		Governing                                             []string
	}
	var sources []source
	for _, s := range t.Sources {
		sources = append(sources, source{s.Name, s.At, s.Provider, s.Mode, s.Path, s.ReadOnly, s.Unavailable, s.Governing})
	}
	return map[string]any{"workspace": t.Name, "fingerprint": t.Fingerprint, "manifest": t.Manifest,
		"mountpoint": t.Mountpoint, "stateRoot": t.StateRoot, "principal": t.Principal, "sources": sources,
		"allowOther": o.AllowOther, "noPassthrough": o.NoPassthrough, "stopTimeout": o.StopTimeout.String(),
		"metricsAddr": o.MetricsAddr, "logLevel": o.Log.Level}
}
