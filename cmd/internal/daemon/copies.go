package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/replace"
	"github.com/wsmount/wsmount/cmd/internal/shellword"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/all"
	"github.com/wsmount/wsmount/providers/seam"
)

var _ control.Copies = (*copies)(nil)

// copies answers the control API's requests to the working copies of a mount.
type copies struct {
	layout
	audit   *audit.Log
	log     *slog.Logger
	changed signal                    // raised when the status file is out of date
	shown   func(ctx context.Context) // waits until programs see the changes
}

// refusal gives an error of a working copy its exit code and advice.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	e := exit.New(codeOf(err), "%w", err)
	switch {
	case errors.Is(err, cache.ErrNoVersion), errors.Is(err, cache.ErrNotKept):
		return e.Hint("`wsmount log` lists the versions that there are")
	case errors.Is(err, cache.ErrTooLarge):
		return e.Hint("`--both` keeps both; or save the remote version elsewhere, and remove it at the remote")
	case errors.Is(err, cache.ErrNoConflict):
		return e.Hint("`wsmount conflicts list` lists the conflicts; give a path of the mount as it shows them, or one that leads into it")
	case errors.Is(err, iofs.ErrNotExist), errors.Is(err, syscall.ENOENT):
		e.Code = exit.Unresolvable
		return e.Hint("give a path of the mount, or one that leads into it")
	case errors.Is(err, cache.ErrMassDelete):
		return e.Hint("look at it; --confirm allows it, once")
	case errors.Is(err, fs.ErrReadOnly):
		e.Code = exit.Denied
		return e.Hint("`wsmount status` says why it is read-only")
	}
	return e
}

// Sync pulls, commits or pushes every working copy that the request concerns, the
// deepest first.
func (c *copies) Sync(ctx context.Context, r control.SyncRequest) (control.EventResult, error) {
	out := control.EventResult{Schema: control.SyncSchema, Event: r.Verb}
	if !slices.Contains([]string{control.VerbPull, control.VerbCommit, control.VerbPush}, r.Verb) {
		return out, exit.New(exit.Usage, "unknown verb %q", r.Verb).Hint("pull, commit or push")
	}
	parts, err := c.copies(r.At)
	if err != nil {
		return out, err
	}
	for _, p := range parts {
		if r.Verb != control.VerbPull && p.readOnly() != "" {
			if len(parts) == 1 {
				return out, exit.New(exit.Denied, "%s is read-only: %s", p.Name, p.readOnly()).Hint("there is nothing to %s", r.Verb)
			}
			continue
		}
		out.Parts++
		var did control.EventResult
		err := p.syncer.asked(ctx, r, &did)
		out.Add(did)
		if err != nil {
			c.log.Error("a working copy could not do as it was told", "part", p.name, "verb", r.Verb, "err", err)
			p.syncer.failed(err, &out)
		}
		out.Failing = append(out.Failing, p.tellFailing()...)
	}
	c.changed.raise()
	c.shown(ctx)
	return out, nil
}

// Log gives versions of every working copy that a path lies in; of all for the
// root of the mount.
func (c *copies) Log(ctx context.Context, r control.LogRequest) (control.LogResult, error) {
	out := control.LogResult{Schema: control.LogSchema, Versions: []cache.Version{}}
	f := cache.LogFilter{Path: r.Path, Since: r.Since, Until: r.Until, Event: r.Event, Turn: r.Turn, Conversation: r.Conversation, Commit: r.Commit, Limit: r.Limit}
	var parts []*part
	var err error
	if strings.Trim(path.Clean("/"+r.Path), "/") == "" {
		parts, out.Notes, err = c.readable()
	} else {
		parts = make([]*part, 1)
		parts[0], _, f.Path, err = c.locate(r.Path)
	}
	if err != nil {
		return out, err
	}
	for _, p := range parts {
		w := p.volume.(*workingCopy)
		err := w.use(ctx, func(ctx context.Context) error {
			list, err := w.Volume.Log(ctx, f)
			for _, v := range list {
				v.Path, v.Was, v.From = within(p, v.Path), within(p, v.Was), within(p, v.From)
				out.Versions = append(out.Versions, v)
			}
			return err
		})
		if err != nil {
			return out, refusal(err)
		}
	}
	slices.SortStableFunc(out.Versions, func(a, b cache.Version) int { return b.Time.Compare(a.Time) })
	if r.Limit > 0 {
		out.Versions = out.Versions[:min(len(out.Versions), r.Limit)]
	}
	return out, nil
}

// within turns a path in a part into a path of the mount.
func within(p *part, name string) string {
	if name == "" {
		return ""
	}
	return path.Join(p.At, name)
}

// Diff compares two states of the working copy that a path lies in.
func (c *copies) Diff(ctx context.Context, r control.DiffRequest) (control.DiffResult, error) {
	out := control.DiffResult{Schema: control.DiffSchema, Path: r.Path}
	p, w, rel, err := c.locate(r.Path)
	if err != nil {
		return out, err
	}
	err = w.use(ctx, func(ctx context.Context) (err error) {
		out.Diff, err = w.Volume.Diff(ctx, cache.DiffOptions{Path: rel, From: r.From, To: r.To, At: p.At})
		return err
	})
	return out, c.noState(p, err)
}

// noState is refusal for a state that does not exist or cannot be restored.
func (c *copies) noState(p *part, err error) error {
	var other *cache.OtherFileError
	switch {
	case errors.As(err, &other):
		return exit.New(exit.Usage, "version %s is of %s, not of %s", other.Version, within(p, other.Of), within(p, other.Path)).
			Hint("%s", c.restoreCommand(p, other.Of, cache.State{Version: other.Version}))
	case errors.Is(err, syscall.EINVAL):
		return exit.New(exit.Usage, "%w", err).
			Hint("a version that `wsmount log` names, a time, event:NAME, turn:ID, conversation:ID or commit:NAME")
	}
	return refusal(err)
}

// restoreCommand is the command that restores a path of a part to a state.
func (c *copies) restoreCommand(p *part, name string, s cache.State) string {
	args := []string{"wsmount", "restore", shellword.Of(c.mountpoint), shellword.Of(within(p, name)), "--to", shellword.Of(s.Name())}
	if s.Before {
		args = append(args, "--before")
	}
	return strings.Join(args, " ")
}

// Restore restores files, except those that govern this mount.
func (c *copies) Restore(ctx context.Context, r control.RestoreRequest) (control.RestoreResult, error) {
	out := control.RestoreResult{Schema: control.RestoreSchema, DryRun: r.DryRun}
	p, w, rel, err := c.locate(r.Path)
	if err != nil {
		return out, err
	}
	if why := p.readOnly(); why != "" {
		return out, exit.New(exit.Denied, "%s is read-only: %s", p.Name, why).Hint("nothing in it can be restored")
	}
	o := cache.RestoreOptions{Path: rel, To: r.State, DryRun: r.DryRun, Refuse: p.governs}
	err = w.use(ctx, func(ctx context.Context) (err error) {
		out.RestoreReport, err = w.Volume.Restore(ctx, o)
		return err
	})
	c.shown(ctx)
	for _, list := range [][]string{out.Restored, out.Removed} {
		for i := range list {
			list[i] = within(p, list[i])
		}
	}
	for i := range out.Skipped {
		s := &out.Skipped[i]
		if s.Path = within(p, s.Path); s.Was != "" {
			command := c.restoreCommand(p, s.Was, r.State)
			s.Was = within(p, s.Was)
			s.Reason = "it was " + s.Was + " then, which comes back with: " + command
		}
	}
	return out, c.noState(p, err)
}

// governs refuses a path that decides on the permissions of this mount.
func (p *part) governs(name string) error {
	for _, g := range p.Governing {
		if name == g || strings.HasPrefix(g, name+"/") {
			return errors.New("it governs this mount")
		}
	}
	return nil
}

// Conflicts lists the conflicts of all working copies.
func (c *copies) Conflicts(ctx context.Context) (control.ConflictsResult, error) {
	out := control.ConflictsResult{Schema: control.ConflictsSchema, Conflicts: []control.Conflict{}}
	parts, notes, err := c.readable()
	if out.Notes = notes; err != nil {
		return out, err
	}
	for _, p := range parts {
		w := p.volume.(*workingCopy)
		err := w.use(ctx, func(context.Context) error {
			for _, found := range w.Volume.Conflicts() {
				out.Conflicts = append(out.Conflicts, control.Conflict{Path: within(p, found.Path), Reason: found.Reason, Since: found.Since,
					Base: found.Base.ETag, Theirs: found.Theirs.ETag, Ours: found.Ours, Kind: found.Kind.String()})
			}
			for _, l := range w.conflictCopies() {
				out.Conflicts = append(out.Conflicts, control.Conflict{Path: within(p, l.String()), Copy: true, Kind: "file",
					Reason: "what replicates the store kept it of a file that was changed in two places: compare the two, then remove this one"})
			}
			return nil
		})
		if err != nil {
			return out, refusal(err)
		}
	}
	slices.SortStableFunc(out.Conflicts, func(a, b control.Conflict) int { return a.Since.Compare(b.Since) })
	return out, nil
}

var sides = map[string]cache.Side{"base": cache.SideBase, "ours": cache.SideOurs, "theirs": cache.SideTheirs}

// ConflictContent reads one side of a conflict.
func (c *copies) ConflictContent(ctx context.Context, at, name string) (io.ReadCloser, error) {
	side, ok := sides[name]
	if !ok {
		return nil, exit.New(exit.Usage, "unknown side %q", name).Hint("base, ours or theirs")
	}
	_, w, rel, err := c.locate(at)
	if err != nil {
		return nil, err
	}
	var body io.ReadCloser
	err = w.use(ctx, func(context.Context) (err error) {
		body, err = w.Volume.ConflictContent(ctx, rel, side) // outer ctx: body outlives use
		return err
	})
	if errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, cache.ErrNoConflict) {
		return nil, exit.New(exit.Unresolvable, "%s has no content on the side %q: %w", at, name, err).Hint("it was removed there, or is not known any more")
	}
	return body, refusal(err)
}

// Resolve ends a conflict, and writes the decision to the audit first.
func (c *copies) Resolve(ctx context.Context, r control.ResolveRequest, content io.Reader) (control.ResolveResult, error) {
	out := control.ResolveResult{Schema: control.ResolveSchema, Path: r.Path, Keep: r.Keep}
	res := cache.Resolution{}
	switch r.Keep {
	case control.KeepOurs:
		res.Keep = cache.SideOurs
	case control.KeepTheirs:
		res.Keep = cache.SideTheirs
	case control.KeepBoth:
		res.Both = true
	case control.KeepContent:
		res.Content = content
	default:
		return out, exit.New(exit.Usage, "%q cannot be kept", r.Keep).Hint("ours, theirs, both or content")
	}
	p, w, rel, err := c.locate(r.Path)
	if err != nil {
		return out, err
	}
	if why := p.readOnly(); why != "" {
		return out, exit.New(exit.Denied, "%s is read-only: %s", p.Name, why).Hint("nothing in it can be resolved")
	}
	err = c.audit.Write(audit.Conflict{Workspace: p.Name, Path: rel, Policy: string(p.syncer.sync.Conflict), Outcome: "resolved: " + r.Keep})
	if err != nil {
		return out, exit.New(exit.Failed, "%w", err).Hint("nothing is resolved without a record of it")
	}
	err = w.use(ctx, func(ctx context.Context) error { return w.Volume.Resolve(ctx, rel, res) })
	c.shown(ctx)
	return out, refusal(err)
}

// Replace puts content in the place of the store's own.
func (c *copies) Replace(ctx context.Context, r control.ReplaceRequest, content io.Reader) error {
	p, w, rel, err := c.locate(r.Path)
	if err != nil {
		return err
	}
	if why := p.readOnly(); why != "" || p.governs(rel) != nil || strings.HasPrefix(rel+"/", ".wsmount/") {
		return fmt.Errorf("/%s cannot be changed from inside (%s): %w", within(p, rel), cmp.Or(why, "it governs the mount"), providers.ErrReadOnly)
	}
	l, err := seam.ParseLocator(rel)
	old, unclear := seam.ParseETag(r.Old)
	exclude, unknown := excluded(p.resolved)
	text, cut := io.ReadAll(content)
	if err = errors.Join(err, unclear, unknown, cut); err != nil {
		return err
	}
	err = w.use(ctx, func(ctx context.Context) error {
		in := replace.Part{Store: seam.New(w.provider), Copy: w.Volume, Later: w.noWait, Exclude: exclude}
		return replace.Through(ctx, in, l, old, string(text))
	})
	c.shown(ctx)
	return err
}

// Lock takes the lock of a file in a part that is a local directory; programs that write there
// without the mount take the same lock.
func (c *copies) Lock(ctx context.Context, r control.ReplaceRequest) (unlock func(), err error) {
	p, rel := c.in(r.Path)
	v, local := p.volume.(*direct.Volume)
	if !local {
		return nil, fmt.Errorf("%s is no directory of this machine: %w", p.Name, providers.ErrUnsupported)
	}
	l, err := seam.ParseLocator(rel)
	var old *seam.ETag
	if err == nil && r.Old != "" {
		old = new(seam.ETag)
		*old, err = seam.ParseETag(r.Old)
	}
	if err != nil {
		return nil, err
	}
	return all.LockGranted(ctx, v.Root(), p.resolved.Local.Dev, p.resolved.Local.Ino, l, old)
}

// Cache reports how much of the disk the content of the working copies takes.
func (c *copies) Cache(ctx context.Context, r control.CacheRequest) (control.CacheResult, error) {
	if r.Pin || r.Unpin {
		return c.pin(ctx, r)
	}
	out := control.CacheResult{Schema: control.CacheSchema, Copies: []control.CacheCopy{}}
	for _, p := range c.parts {
		if w, ok := p.volume.(*workingCopy); ok {
			usage := control.CacheCopy{Workspace: p.Name, Directory: w.dir, Mounted: true, Pins: w.pins.List()}
			usage.ContentUsage, usage.Freed = w.Volume.ContentOf(r.Clear)
			out.Copies = append(out.Copies, usage)
		}
	}
	return out, nil
}
