package host

import (
	"bytes"
	"slices"
	"time"

	"github.com/wsmount/wsmount/mountspec/host/hostfile"
)

// Outdated describes how the registry, or the configuration for a workspace only
// in it, differs now from a workspace that was resolved before; "": it does not.
// A mount does not follow such changes.
func (r *Resolver) Outdated(was *Resolved) string {
	what := ""
	if was.entry != nil {
		what = r.entryDiffers(was)
	}
	if what == "" && (was.entry == nil || !was.entry.HasManifest()) {
		what = r.rowDiffers(was.Address.String())
	}
	if what == "" {
		return ""
	}
	return was.Address.String() + " goes on with what was accepted when it was mounted: " + what + "; unmount it, and mount it again"
}

func (r *Resolver) entryDiffers(was *Resolved) string {
	reg, err := r.store.load()
	if err != nil {
		return "the registry cannot be read (" + err.Error() + ")"
	}
	e, ok := reg.Get(was.Address.String())
	switch {
	case !ok:
		return "the registry has no such workspace"
	case e.Differs(was.entry.Files) == "" && e.Location == was.entry.Location:
		return ""
	}
	return "the registry has another manifest, or another policy, since " + e.AcceptedAt.Format(time.RFC3339)
}

// rowDiffers describes how the entry of a workspace in the configuration has changed.
func (r *Resolver) rowDiffers(addr string) string {
	was, ok := r.cfg.Workspaces[addr]
	if !ok {
		return ""
	}
	f, err := hostfile.Read(r.cfg.Path, hostfile.Options{})
	if err != nil {
		return "the host configuration cannot be read (" + err.Error() + ")"
	}
	if digest(f.Data) == r.cfg.digest {
		return ""
	}
	c, found := ParseConfig(f.Data, ParseOptions{Name: f.Path, Home: r.o.Home, Lookup: r.o.Lookup})
	if err := found.Err(); err != nil {
		return "the host configuration is not valid any more"
	}
	switch is, ok := c.Workspaces[addr]; {
	case !ok:
		return "the host configuration has no such workspace"
	case !was.equal(is):
		return "the host configuration has another entry of it"
	}
	return ""
}

// equal reports whether two entries have the same content.
func (e WorkspaceEntry) equal(o WorkspaceEntry) bool {
	if e.Path != o.Path || e.OwnerID != o.OwnerID || (e.Row == nil) != (o.Row == nil) {
		return false
	}
	if e.Row == nil {
		return true
	}
	one, err := e.Row.workspace.Marshal()
	two, oerr := o.Row.workspace.Marshal()
	return err == nil && oerr == nil && bytes.Equal(one, two) && slices.Equal(e.Row.named, o.Row.named)
}
