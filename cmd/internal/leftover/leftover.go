// Package leftover inspects working copies that are not mounted: their content that no store has,
// changes as well as commits, and how to export it.
//
//	r, err := leftover.Inspect(dir, 20)
//	got, err := leftover.Export(ctx, dir, "/home/bob/out")
//
// It asks no store, so that it works if the store has moved, is gone, or belongs to a workspace
// that is not known any more. It promises that Export writes all that Inspect counts, or names it
// with the reason why not.
package leftover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/clone"
	"github.com/wsmount/wsmount/cmd/internal/inplace"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/cmd/internal/state"
	"github.com/wsmount/wsmount/providers"
)

// Report is the content of an unmounted working copy that no store has.
type Report struct {
	cache.OfflineReport
	Mounted bool `json:"mounted,omitempty"` // InUse by a mount, which sends the changes, not by a command
	// Unmounted is the mount point at which the mount that has it was; "": it is still there.
	Unmounted string                     `json:"unmounted,omitempty"`
	Branches  []providers.UnpushedBranch `json:"branches,omitempty"` // with their commits that are not pushed
	Unread    string                     `json:"unread,omitempty"`   // why commits cannot be read; the noted number may be wrong
}

// patience is how long Inspect waits for a command that has the working copy alone, or for a mount
// that is starting.
const patience = 2 * time.Second

// Inspect reports the content of the working copy in a directory, at most limit changes (0: all),
// also on a full disk. A copy that is mounted, or stays locked otherwise, is InUse. The errors are
// those of [cache.Inspect].
func Inspect(dir string, limit int) (Report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return Await(ctx, dir, limit)
}

// Await is Inspect that waits until ctx is done.
func Await(ctx context.Context, dir string, limit int) (Report, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := inspect(dir, limit)
		if err != nil || !r.InUse {
			return r, err
		}
		if m := state.MountOf(dir); m != nil {
			if r.Mounted = true; !inplace.IsStanding(m) {
				r.Unmounted = m.Mountpoint
			}
			return r, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, nil
		}
	}
}

func inspect(dir string, limit int) (r Report, err error) {
	space := room.New(state.RootOf(dir))
	err = space.WhileFull(func() (err error) {
		r.OfflineReport, err = cache.Inspect(copyOf(dir), limit)
		return err
	})
	gone := errors.Is(err, fs.ErrNotExist) // its clone may exist nevertheless
	if err != nil && !gone || r.InUse {
		return r, err
	}
	cerr := space.WhileFull(func() (err error) {
		r.Branches, err = clone.Unpushed(dir, r.Unpushed, r.StandsOn)
		return err
	})
	switch {
	case cerr == nil:
		r.count()
	case clone.IsAllKnown(r.Unpushed, r.StandsOn, cerr):
	case errors.Is(cerr, providers.ErrUnavailable):
		r.InUse = true // it was locked just now
	default:
		r.Unread = "the clone cannot be read: " + cerr.Error()
		if r.Unpushed == nil {
			r.Unpushed = &cache.Unpushed{}
		}
	}
	if gone && !r.Empty() {
		err = nil
	}
	return r, err
}

// count corrects the noted number of commits by the existing ones: the end of a push may not be
// noted, nor the commits of a branch that is not the current one.
func (r *Report) count() {
	commits := map[providers.Revision]time.Time{}
	for _, b := range r.Branches {
		for _, c := range b.Commits {
			commits[c.Revision] = c.Time
		}
	}
	if len(commits) == 0 && (r.Unpushed == nil || r.Total == 0) {
		r.Unpushed = nil
		return
	}
	if r.Unpushed == nil {
		r.Unpushed = &cache.Unpushed{}
	}
	r.Unpushed.Commits = len(commits)
	if r.Unpushed.Since.IsZero() && len(commits) > 0 {
		r.Unpushed.Since = slices.MinFunc(slices.Collect(maps.Values(commits)), time.Time.Compare)
	}
}

// Copy is a working copy as commands show it.
type Copy struct {
	Workspace string `json:"workspace"`
	Directory string `json:"directory"`
	Place     string `json:"place,omitempty"`   // of its storage
	Damaged   string `json:"damaged,omitempty"` // why it cannot be read
	Full      string `json:"full,omitempty"`    // the same, if its disk is full
	Report
}

// Look is Inspect for display: it shows unreadable copies too.
func Look(dir string, limit int) Copy {
	c := Copy{Workspace: state.WorkspaceOf(dir), Directory: dir}
	c.Place, _ = state.StorageOf(dir)
	var err error
	c.Report, err = Inspect(dir, limit)
	switch {
	case state.IsFull(err):
		c.Full = err.Error()
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		c.Damaged = err.Error()
	}
	return c
}

// Matters reports whether a person should know of it.
func (c Copy) Matters() bool { return c.Damaged+c.Full+c.Unmounted != "" || !c.Mounted && !c.Empty() }

// IsUnknown reports whether it may hold more than is known.
func (c Copy) IsUnknown() bool {
	return c.Damaged+c.Full+c.Unread+c.Unmounted != "" || c.InUse && !c.Mounted
}

// Text describes the loss if the working copy were deleted.
func (r *Report) Text() string {
	var list []string
	add := func(what string, n int) { list = append(list, fmt.Sprintf("%s (%d)", what, n)) }
	if n := max(r.Total, len(r.Recovered)); n > 0 {
		add("unsaved changes", n)
	}
	switch {
	case r.Unpushed != nil && r.Unpushed.Commits > 0:
		add("commits that are not pushed", r.Unpushed.Commits)
	case r.Unpushed != nil && list == nil:
		list = append(list, "commits that are not pushed")
	}
	text := strings.Join(list, " and ")
	if r.Unread != "" {
		text += ", and commits cannot be read"
	}
	return text
}

// NotEmpty returns the working copies the deletion of which would lose content.
func NotEmpty(dirs []string) (full []string) {
	for _, dir := range dirs {
		r, err := Inspect(dir, 1)
		if err != nil || !r.Empty() {
			full = append(full, dir)
		}
	}
	return full
}

// Ways names the commands that save the content of the working copy in a directory. now is the
// fingerprint of its workspace's present storage; "": the workspace cannot be mounted as it is.
func Ways(dir, now string) string {
	export := "`wsmount recover export " + dir + " DIR` copies it, commits as a bundle for git"
	if now != "" && Fingerprint(dir) == Fingerprint(now) {
		return "`wsmount recover upload " + dir + "` sends it; " + export
	}
	return export
}

// Advice is the advice if the working copy in a directory cannot be read.
func Advice(dir string, err error) string {
	if errors.Is(err, cache.ErrDamaged) {
		return "`wsmount recover --scan " + dir + "` rebuilds it"
	}
	return "see that you may read what is in " + dir + ", and the disk can"
}

// Fingerprint is the fingerprint of a working copy's storage, by the name of its directory.
func Fingerprint(dir string) string {
	fingerprint, _, _ := strings.Cut(filepath.Base(dir), ".")
	return fingerprint
}

// copyOf is the directory of the cache in that of a working copy.
func copyOf(dir string) string { return filepath.Join(dir, state.CopyName) }
