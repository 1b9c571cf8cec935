package daemon

import (
	"context"
	"path/filepath"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/mountspec/audit"
)

// makeRoom gives up clean content of the mount because its state directory has no
// room, and reports whether that helped. Before the mount is ready nothing goes: the
// working copies make room for themselves as they open.
func (d *Daemon) makeRoom() (made bool) {
	if d.getState() == control.Starting {
		return false
	}
	for _, p := range d.parts {
		if w, ok := p.volume.(*workingCopy); ok && w.Volume.MakeRoom() {
			made = true
		}
	}
	return made
}

// Cache implements control.Copies.
func (d *Daemon) Cache(_ context.Context, r control.CacheRequest) (control.CacheResult, error) {
	out := control.CacheResult{Schema: control.CacheSchema, Copies: []control.CacheCopy{}}
	for _, p := range d.parts {
		w, ok := p.volume.(*workingCopy)
		if !ok {
			continue
		}
		c := control.CacheCopy{Workspace: p.Name, Directory: w.dir, Mounted: true}
		if r.Clear {
			c.Freed = w.Volume.ClearContent()
		}
		c.ContentUsage = w.Volume.ContentUsage()
		out.Copies = append(out.Copies, c)
	}
	return out, nil
}

// CacheOf is Daemon.Cache for the working copy in a directory, which is not mounted. The
// error is cache.ErrInUse when it is, and io/fs.ErrNotExist when there is none.
func CacheOf(dir string, clear bool) (c control.CacheCopy, err error) {
	c.Workspace, c.Directory = WorkspaceOf(dir), dir
	err = state.WhileFull(state.RootOf(dir), nil, func() (err error) {
		c.ContentUsage, c.Freed, err = cache.ContentOf(filepath.Join(dir, state.CopyName), clear)
		return err
	})
	return c, err
}

// WorkspaceOf is the address of the workspace of the working copy in a directory.
func WorkspaceOf(dir string) string {
	slug := filepath.Dir(dir)
	return "@" + filepath.Base(filepath.Dir(slug)) + "/" + filepath.Base(slug)
}

// OpenAudit opens the audit log of a state directory, whose records get the room of
// the ballast on a full disk; now is nil for the time of the machine.
func OpenAudit(root string, now func() time.Time) (*audit.Log, error) {
	return audit.Open(filepath.Join(root, "audit.log"), audit.Options{Now: now,
		WhileFull: func(do func() error) error { return state.WhileFull(root, nil, do) }})
}

// Inspect is cache.Inspect for the working copy in a directory, on a full disk too.
func Inspect(dir string, limit int) (l cache.OfflineReport, err error) {
	err = state.WhileFull(state.RootOf(dir), nil, func() (err error) {
		l, err = cache.Inspect(filepath.Join(dir, state.CopyName), limit)
		return err
	})
	return l, err
}
