package cache

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// OfflineReport is what a working copy that is not mounted holds.
type OfflineReport struct {
	StateDir string `json:"state_dir"`
	// InUse says that it is mounted: ask the mount, nothing else is known.
	InUse bool `json:"in_use,omitempty"`
	// Ended says how the last session did: "clean", "killed" or "power lost";
	// "" when there was none.
	Ended string `json:"ended,omitempty"`

	// Unsaved is what the backend does not have, in the order of the changes;
	// Total counts what a limit left out, too.
	Unsaved []Unsaved `json:"unsaved,omitempty"`
	Total   int       `json:"total"`

	Files     int   `json:"files"` // whose content is unsaved
	Bytes     int64 `json:"bytes"` // of unsaved content
	Suspect   int   `json:"suspect,omitempty"`
	Conflicts int   `json:"conflicts,omitempty"`
	Held      int   `json:"held,omitempty"` // conflicts included
	Orphans   int   `json:"orphans,omitempty"`

	Unpushed *Unpushed `json:"unpushed,omitempty"` // commits that its remote does not have

	// Recovered are files, below the state directory, whose names a loss of
	// power took.
	Recovered []string `json:"recovered,omitempty"`
}

// Empty reports whether nothing would be lost with it.
func (l *OfflineReport) Empty() bool {
	return !l.InUse && l.Total == 0 && l.Unpushed == nil && len(l.Recovered) == 0
}

// Unsaved is something that the backend does not have.
type Unsaved struct {
	Path   string    `json:"path"`
	Change string    `json:"change"` // created, changed, renamed, deleted, attributes, unknown
	Kind   string    `json:"kind"`   // file, dir, symlink, other
	Size   int64     `json:"size"`
	Time   time.Time `json:"time"`
	// Suspect content may have lost bytes when the power was lost.
	Suspect  bool   `json:"suspect,omitempty"`
	Conflict bool   `json:"conflict,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it was held back

	ino table.Ino
}

// Inspect says what a working copy holds, of the unsaved at most limit entries
// (0: all). It asks no backend and changes nothing that a mount would see.
// io/fs.ErrNotExist when stateDir holds none.
func Inspect(stateDir string, limit int) (OfflineReport, error) {
	left := OfflineReport{StateDir: stateDir}
	v, err := lookInto(stateDir, false)
	switch {
	case errors.Is(err, ErrInUse):
		left.InUse = true
		return left, nil
	case err != nil:
		return left, err
	}
	defer v.state.close()
	locked := v.lock()
	defer locked.unlock()
	left.Ended = ended(locked.table.Session())
	locked.eachUnsaved(func(u Unsaved) {
		left.add(u)
		if limit == 0 || len(left.Unsaved) < limit {
			left.Unsaved = append(left.Unsaved, u)
		}
	})
	left.Orphans, left.Unpushed = len(locked.Orphans()), revision.UnpushedOf(locked.table)
	left.Recovered, err = recovery.Rescued(stateDir)
	return left, errors.Join(err, locked.table.Err())
}

func ended(s table.Session) string {
	switch {
	case s.First:
		return ""
	case s.Clean:
		return "clean"
	case s.Killed():
		return "killed"
	}
	return "power lost"
}

func (l *OfflineReport) add(u Unsaved) {
	l.Total++
	if u.Kind == "file" && u.Change != "deleted" {
		l.Bytes += u.Size
		if u.Change == "created" || u.Change == "changed" {
			l.Files++
		}
	}
	if u.Suspect {
		l.Suspect++
	}
	if u.Conflict {
		l.Conflicts++
	}
	if u.Reason != "" {
		l.Held++
	}
}

// eachUnsaved visits what the backend does not have: the names that differ, and files
// that were open for writing when the last session ended.
func (v *View) eachUnsaved(visit func(Unsaved)) {
	power := recovery.PowerLost(v.View)
	listed := map[table.Ino]bool{}
	v.table.Dirty(0, func(_ uint64, l table.Link) bool {
		rec, _ := v.table.Name(l.Dir, l.Name)
		u := v.unsavedAt(l, rec)
		if n := v.table.Inode(rec.Ino); n != nil && n.IsRegular() {
			listed[rec.Ino] = true
			u.Suspect = u.Suspect || power && (n.Writing || n.Synced != n.ContentVersion && u.Change != "renamed")
		}
		visit(u)
		return true
	})
	for _, ino := range files.DirtyIntents(v.View) {
		n := v.table.Inode(ino)
		if n == nil || len(n.Links) == 0 || listed[ino] {
			continue
		}
		rec, _ := v.table.Name(n.Links[0].Dir, n.Links[0].Name)
		u := v.unsavedAt(n.Links[0], rec)
		u.Change, u.Suspect = "changed", u.Suspect || power
		visit(u)
	}
}

// unsavedAt describes what differs under a name.
func (v *View) unsavedAt(l table.Link, rec table.Name) Unsaved {
	u := Unsaved{Path: v.PathFor(l), Change: "deleted", Kind: "file", ino: rec.Ino}
	if rec.Held != nil {
		u.Conflict, u.Reason = rec.Held.Conflict, rec.Held.Reason
	}
	n := v.table.Inode(rec.Ino)
	if n == nil {
		return u
	}
	u.Size, u.Time, u.Suspect = n.Size, n.Mtime.Time(), n.Suspect
	switch {
	case n.IsDir():
		u.Kind, u.Size = "dir", 0
	case n.IsSymlink():
		u.Kind = "symlink"
	case !n.IsRegular():
		u.Kind = "other"
	}
	u.Change = changeOf(rec, n)
	return u
}

// changeOf names what differs.
func changeOf(rec table.Name, n *table.Inode) string {
	elsewhere := len(n.RemoteLinks) > 0
	switch {
	case rec.Remote == nil && elsewhere:
		return "renamed"
	case rec.Remote == nil:
		return "created"
	case rec.Remote.Ino != rec.Ino && elsewhere:
		return "renamed"
	case rec.Remote.Ino != rec.Ino || rec.Remote.ContentVersion != n.ContentVersion:
		return "changed"
	case rec.Remote.AttrGen != n.AttrGen:
		return "attributes"
	}
	return "unknown"
}

// Exported says what an Export wrote.
type Exported struct {
	Files   []string  `json:"files,omitempty"` // below into
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Export writes the unsaved files of a working copy that is not mounted into a
// directory, under their paths, as they are. It makes the directory, and never
// writes over anything there: what has a name there already is skipped. filter
// chooses; nil: all. The working copy stays as it is.
func Export(ctx context.Context, stateDir, into string, filter func(Unsaved) bool) (Exported, error) {
	var out Exported
	v, err := lookInto(stateDir, true)
	if err != nil {
		return out, err
	}
	defer v.state.close()
	var all []Unsaved
	err = v.view(func(v *View) error {
		v.eachUnsaved(func(u Unsaved) {
			if filter == nil || filter(u) {
				all = append(all, u)
			}
		})
		return nil
	})
	if err != nil {
		return out, err
	}
	for _, u := range all {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		switch name, err := v.export(into, u); {
		case err != nil:
			out.Skipped = append(out.Skipped, Skipped{Path: u.Path, Reason: err.Error()})
		case name != "":
			out.Files = append(out.Files, name)
		}
	}
	return out, nil
}

// export writes one entry, and says under which name; "" when there is nothing
// to write.
func (v *Volume) export(into string, u Unsaved) (string, error) {
	name := recovery.SafePath(u.Path)
	switch {
	case u.Change == "deleted":
		return "", nil
	case u.Kind == "dir":
		return "", os.MkdirAll(filepath.Join(into, filepath.FromSlash(name)), 0o700)
	case u.Kind == "symlink":
		return name, v.exportLink(into, name, u.ino)
	case u.Kind != "file":
		return "", errors.New("neither a file nor a link")
	}
	f, err := v.store.Open(u.ino)
	if errors.Is(err, iofs.ErrNotExist) {
		if u.Size == 0 {
			return name, recovery.WriteOut(into, name, strings.NewReader(""))
		}
		return "", errors.New("the content was not fetched; the remote has it under the old name")
	}
	if err != nil {
		return "", err
	}
	defer f.Release()
	if !f.Whole() {
		name += ".partial"
	}
	return name, recovery.WriteOut(into, name, recovery.Raw(f))
}

func (v *Volume) exportLink(into, name string, ino table.Ino) error {
	locked := v.lock()
	n := locked.table.Inode(ino)
	target := ""
	if n != nil {
		target = n.Target
	}
	locked.unlock()
	path := filepath.Join(into, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// Accept takes suspect content for good, so that it is sent like any other
// change: a person has looked at it, or has nothing better. Paths choose, a
// directory all below it; none: all. It gives the paths that it was about.
func (v *Volume) Accept(paths ...string) (accepted []string, err error) {
	err = v.update(func(v *Tx) error {
		v.table.Dirty(0, func(_ uint64, l table.Link) bool {
			rec, _ := v.table.Name(l.Dir, l.Name)
			at, ok := v.LocalPath(l)
			n := v.table.Inode(rec.Ino)
			if n == nil || !n.Suspect || !ok || !chosen(at.String(), paths) {
				return true
			}
			v.ContentChanged(rec.Ino, n.Size, n.Mtime) // what is on its way is whole
			v.table.Edit(rec.Ino).Suspect = false
			rec.Held = nil
			v.table.SetName(l.Dir, l.Name, rec)
			v.wakes = true
			v.Touch(l)
			accepted = append(accepted, at.String())
			return true
		})
		return nil
	})
	return accepted, err
}

func chosen(path string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return below(path, p) })
}

// Accept does what Volume.Accept does, in a working copy that is not mounted.
func Accept(stateDir string, paths ...string) (accepted []string, err error) {
	if !isState(stateDir) {
		return nil, &iofs.PathError{Op: "accept", Path: stateDir, Err: syscall.ENOENT}
	}
	o := Options{StateDir: stateDir}
	o.setDefaults()
	s, err := openState(o)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	v := newVolume(nowhere{}, o, s)
	if err = v.recoverLast(); err == nil { // what follows hides from the next start how this one ended
		accepted, err = v.Accept(paths...)
	}
	if err == nil {
		err = v.recovery().Sync()
	}
	v.stop()
	v.work.Wait()
	if err := errors.Join(err, s.close()); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return accepted, nil
}
