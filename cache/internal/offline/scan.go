package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// ErrNotDamaged says that there is nothing to rebuild.
var ErrNotDamaged = errors.New("the database of the working copy is not damaged")

// ScanReport lists the files that a Scan restored.
type ScanReport struct {
	// Aside is the path of the old state now; it is never removed.
	Aside string `json:"aside"`
	// Restored are files of the new working copy, all of them to be sent as new: a remote file
	// under the same name is a conflict unless it is equal.
	Restored []string `json:"restored,omitempty"`
	// Recovered are files below the state directory that could not be given
	// their place: it is not known, another has it, or parts are missing.
	Recovered []string          `json:"recovered,omitempty"`
	Skipped   []history.Skipped `json:"skipped,omitempty"` // could not even be copied
	// Unnamed counts content that stayed in Aside because it has no path noted, and nothing is
	// left of the database that knows one: it was only read, and the remote has it, or it was
	// made just before the end.
	Unnamed int `json:"unnamed,omitempty"`
	// Kept counts content of the history, whose names are lost.
	Kept int `json:"kept,omitempty"`
	// Unknown are the kinds of records that only the database had, whether any existed or not:
	// those that the remote has come back with a listing, unsent ones do not.
	Unknown []string `json:"unknown"`
}

// onlyNames are the kinds of entries and changes without a content file: no scan finds them.
func onlyNames() []string {
	return []string{"symbolic links", "device files, sockets and pipes", "empty directories", "hard links",
		"renames", "deletions", "modes, owners and extended attributes"}
}

// Scan rebuilds the names of a working copy whose database is damaged from the paths noted in
// its content files, and sets the old state aside. It fails with ErrNotDamaged when there is no
// need, unless force is given, and when a newer wsmount made the database.
//
// Facts that only the database had are lost: deletions and renames that were not sent yet,
// attributes, links, empty directories, and which changes the remote has already. So all local
// content that was ever written counts as a new file. The record of commits to push is kept, as
// far as it can be read. If these commits are lost, content that was only read comes back, too:
// it may be the only copy.
func Scan(ctx context.Context, dir string, force bool, lost Lost) (ScanReport, error) {
	r := &scan{report: ScanReport{Unknown: onlyNames()}, why: lost}
	if !state.IsOne(dir) {
		return r.report, &iofs.PathError{Op: "scan", Path: dir, Err: syscall.ENOENT}
	}
	d, err := state.Lock(dir)
	if err != nil {
		return r.report, fmt.Errorf("cache: %w", err)
	}
	r.Dir = d
	if err = r.setAside(force); err == nil {
		err = r.rebuild(ctx)
	}
	if err = errors.Join(err, d.Close()); err != nil {
		err = fmt.Errorf("cache: scan: %w", err)
	}
	return r.report, err
}

// scan is a Scan at work.
type scan struct {
	workingCopy // the new one
	old         *content.Store
	why         Lost
	lost        bool // unpushed commits are lost
	report      ScanReport
}

// asidePrefix begins the directory name of an old state.
const asidePrefix = "damaged-"

// setAside moves all away but the lock, old states and recovered files.
func (r *scan) setAside(force bool) error {
	switch err := r.check(); {
	case errors.Is(err, table.ErrNewer):
		return err
	case err == nil && !force:
		return ErrNotDamaged
	}
	entries, err := os.ReadDir(r.Path)
	if err != nil {
		return err
	}
	name := asidePrefix + time.Now().UTC().Format("20060102T150405.000000000")
	r.report.Aside = filepath.Join(r.Path, name)
	if err := os.Mkdir(r.report.Aside, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" || e.Name() == recovery.Dir || strings.HasPrefix(e.Name(), asidePrefix) {
			continue
		}
		if err := os.Rename(filepath.Join(r.Path, e.Name()), filepath.Join(r.report.Aside, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// check reads all of the table, and returns its first damage as an error.
func (r *scan) check() error {
	if _, err := os.Stat(state.Names(r.Path)); err != nil {
		return err
	}
	err := r.OpenTable(table.Options{})
	if err == nil {
		err = r.Table.Check()
	}
	return errors.Join(err, r.CloseTable())
}

// rebuild makes the new state.
func (r *scan) rebuild(ctx context.Context) (err error) {
	if r.old, err = content.Open(r.report.Aside, content.Options{Ballast: -1, Floor: -1}); err != nil {
		return err
	}
	defer r.old.Close()
	if err = r.OpenTable(table.Options{}); err != nil {
		return err
	}
	if r.Content, err = content.Open(r.Path, content.Options{}); err != nil {
		return err
	}
	r.tree = treeOf(r.Table)
	err = r.update(func(tx *tree.Tx) error {
		tx.Put(table.Root, newInode(tx, providers.KindDir))
		return revision.KeepUnpushed(tx, table.Remains(state.Names(r.report.Aside)))
	})
	r.lost = r.workingCopy.lost(r.why) != nil
	if err == nil {
		err = r.adoptAll(ctx)
	}
	if err == nil {
		err = r.old.EachKept(func(string) { r.report.Kept++ })
	}
	if err == nil {
		err = recovery.Sync(r.tree, r.Content, r.Path, r.update)
	}
	return err
}

func (r *scan) update(do func(*tree.Tx) error) error { return r.tree.Update(do, nil) }

// newInode is an inode of which all but its kind is lost. Modes were in the table: the new one
// grants no more than the old one may have.
func newInode(tx *tree.Tx, kind providers.Kind) *table.Inode {
	m := attrs.Mapping{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Umask: 0o077, Listed: true}
	return m.Inode(&providers.Info{Kind: kind}, table.TimeOf(time.Now()), revision.Since(tx))
}

// found is one content file of the old state.
type found struct {
	ino     table.Ino
	path    string
	size    int64
	partial bool
}

func (r *scan) adoptAll(ctx context.Context) error {
	var all []found
	err := r.old.Each(func(ino uint64, path string, size int64, partial bool) {
		all = append(all, found{ino, path, size, partial})
	})
	if err != nil {
		return err
	}
	r.findPlaces(all)
	for _, f := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.path == "" {
			r.report.Unnamed++
			continue
		}
		if err := r.adopt(ctx, f); err != nil {
			r.report.Skipped = append(r.report.Skipped, history.Skipped{Path: f.path, Reason: err.Error()})
		}
	}
	return nil
}

// findPlaces finds the paths of content that has none noted, because it was made in the last
// second or is being written, in the readable remains of the old database. It skips content
// that the remote has, unless commits are lost.
func (r *scan) findPlaces(all []found) {
	silent := map[table.Ino]*found{}
	for i := range all {
		if all[i].path == "" {
			silent[all[i].ino] = &all[i]
		}
	}
	if len(silent) == 0 {
		return
	}
	inodes := table.Salvage(state.Names(r.report.Aside), func(ino table.Ino) bool { return silent[ino] != nil })
	for ino, f := range silent {
		if n := inodes[ino]; n != nil && n.IsRegular() && len(n.Links) > 0 && (r.lost || n.Writing || n.ContentVersion != n.Origin.ContentVersion) {
			f.path = placeIn(inodes, n.Links[0])
		}
	}
}

// mostDirs bounds a climb through directories, should records lead in circles.
const mostDirs = 4096

// placeIn is the path of a name; "" when a directory above it is not known.
func placeIn(inodes map[table.Ino]*table.Inode, l table.Link) string {
	path := l.Name
	for range mostDirs {
		if l.Dir == table.Root {
			return path
		}
		n := inodes[l.Dir]
		if n == nil || !n.IsDir() || len(n.Links) == 0 {
			return ""
		}
		l = n.Links[0]
		path = l.Name + "/" + path
	}
	return "" // a ring
}

// adopt gives one content file its place, or puts it into [recovery.Dir], where a person finds
// it.
func (r *scan) adopt(ctx context.Context, f found) error {
	c, err := r.old.Open(f.ino)
	if err != nil {
		return err
	}
	defer c.Release()
	data := recovery.Raw(c)
	if at, perr := providers.ParseLocator(f.path); perr == nil && !f.partial {
		err := r.enter(ctx, at, data, c.Mtime())
		if err == nil {
			r.report.Restored = append(r.report.Restored, at.String())
			return nil
		}
		if !errors.Is(err, syscall.EEXIST) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
	}
	name := recovery.SafePath(f.path) + "." + strconv.FormatUint(f.ino, 10)
	if f.partial {
		name += ".partial"
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := recovery.WriteOut(filepath.Join(r.Path, recovery.Dir), name, data); err != nil {
		return err
	}
	r.report.Recovered = append(r.report.Recovered, recovery.Dir+"/"+name)
	return nil
}

// enter makes a file of the new working copy.
func (r *scan) enter(ctx context.Context, at providers.Locator, data io.Reader, mtime int64) error {
	dir, err := r.dir(at.Parent())
	if err != nil {
		return err
	}
	l := table.Link{Dir: dir, Name: at.Name()}
	taken := r.tree.Lock().Record(l).Ino != 0
	r.tree.Unlock()
	if taken {
		return syscall.EEXIST
	}
	made, err := files.Make(ctx, r.tree, r.Content, at.String(), data)
	if err != nil {
		return err
	}
	return r.update(func(tx *tree.Tx) error {
		n := newInode(tx, providers.KindFile)
		n.State, n.Size, n.Blocks, n.Mtime = table.Whole, made.Size, made.Blocks, table.Stamp(mtime)
		n.Pulled = false // as far as is known
		tx.Put(made.Ino, n)
		tx.SetLocal(l, made.Ino, false, false)
		version := history.About(history.Written, "recovered", l, made.Ino, tx.Inode(made.Ino))
		version.New, version.Path, version.Time = true, at.String(), time.Now().UnixNano()
		history.Append(tx, history.HeadOf(tx, l), version)
		return nil
	})
}

// dir is a directory of the new working copy. The remote is assumed to have it, as it has most;
// a listing will correct that.
func (r *scan) dir(at providers.Locator) (table.Ino, error) {
	if at.IsRoot() {
		return table.Root, nil
	}
	parent, err := r.dir(at.Parent())
	if err != nil {
		return 0, err
	}
	var ino table.Ino
	l := table.Link{Dir: parent, Name: at.Name()}
	err = r.update(func(tx *tree.Tx) error {
		if ino = tx.Record(l).Ino; ino != 0 {
			if !tx.Inode(ino).IsDir() {
				return syscall.ENOTDIR
			}
			return nil
		}
		n := newInode(tx, providers.KindDir)
		ino = tx.Alloc()
		tx.Put(ino, n)
		tx.SetLocal(l, ino, false, false)
		tx.SetRemote(l, &table.Remote{Ino: ino, Kind: providers.KindDir, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen})
		return nil
	})
	return ino, err
}
