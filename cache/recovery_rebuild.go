package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/recovery"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// ErrDamaged says that the database of a working copy cannot be read: Scan makes
// another from its content files.
var ErrDamaged = table.ErrDamaged

// ErrNotDamaged says that there is nothing to rebuild.
var ErrNotDamaged = errors.New("the database of the working copy is not damaged")

// ScanReport says what a Scan could bring back.
type ScanReport struct {
	// Aside is where the old state is now; it is never removed.
	Aside string `json:"aside"`
	// Restored are files of the new working copy, all of them to be sent as if
	// they were new: what the backend has under the same name is a conflict
	// unless it is equal.
	Restored []string `json:"restored,omitempty"`
	// Recovered are files below the state directory that could not be given
	// their place: it is not known, another has it, or parts are missing.
	Recovered []string  `json:"recovered,omitempty"`
	Skipped   []Skipped `json:"skipped,omitempty"` // could not even be copied
	// Unnamed counts content that stayed in Aside because it has no path noted, and
	// nothing is left of the database that knows one: it was only read here, and the
	// backend has it, or it was made just before the end.
	Unnamed int `json:"unnamed,omitempty"`
	// Kept counts content of the history, whose names are lost.
	Kept int `json:"kept,omitempty"`
	// Unknown is what only the database knew, whatever there was of it: what the
	// backend has comes back with a listing, what was not sent does not.
	Unknown []string `json:"unknown"`
}

// onlyNames is what has no content file, so that no scan finds it or its name.
func onlyNames() []string {
	return []string{"symbolic links", "device files, sockets and pipes", "empty directories", "hard links",
		"renames", "deletions", "modes, owners and extended attributes"}
}

// Scan rebuilds the names of a working copy whose database is damaged from what
// its content files say of themselves, and sets the old state aside. It fails
// with ErrNotDamaged when there is no need, unless force is given, with
// ErrInUse, and when a newer wsmount made the database.
//
// What only the database knew is lost: deletions and renames that were not sent
// yet, attributes, links, empty directories, and which changes the backend has
// already. So everything that was ever written here and is still here counts
// as a new file.
func Scan(ctx context.Context, dir string, force bool) (ScanReport, error) {
	r := &scan{o: Options{StateDir: dir}, report: ScanReport{Unknown: onlyNames()}}
	r.o.setDefaults()
	if !isState(dir) {
		return r.report, &iofs.PathError{Op: "scan", Path: dir, Err: syscall.ENOENT}
	}
	lock := &stateDir{dir: dir} // of which only the lock is used
	if err := lock.take(); err != nil {
		return r.report, fmt.Errorf("cache: %w", err)
	}
	defer lock.close()
	err := r.setAside(force)
	if err == nil {
		err = r.rebuild(ctx)
	}
	if err != nil {
		err = fmt.Errorf("cache: scan: %w", err)
	}
	return r.report, err
}

// scan is a Scan at work.
type scan struct {
	o      Options
	report ScanReport
	v      *Volume        // the new one
	old    *content.Store // the old content
}

// asidePrefix begins the names of old states.
const asidePrefix = "damaged-"

// setAside moves all but the lock, old states and what was recovered away.
func (r *scan) setAside(force bool) error {
	switch err := tableState(r.o.StateDir); {
	case errors.Is(err, table.ErrNewer):
		return err
	case err == nil && !force:
		return ErrNotDamaged
	}
	entries, err := os.ReadDir(r.o.StateDir)
	if err != nil {
		return err
	}
	name := asidePrefix + r.o.Now().UTC().Format("20060102T150405.000000000")
	r.report.Aside = filepath.Join(r.o.StateDir, name)
	if err := os.Mkdir(r.report.Aside, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" || e.Name() == recovery.Dir || strings.HasPrefix(e.Name(), asidePrefix) {
			continue
		}
		if err := os.Rename(filepath.Join(r.o.StateDir, e.Name()), filepath.Join(r.report.Aside, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// tableState says what is wrong with the table of a working copy, reading all of
// it.
func tableState(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "names")); err != nil {
		return err
	}
	s := &stateDir{dir: dir}
	err := s.openTable(table.Options{})
	if err == nil {
		err = s.table.Check()
	}
	return errors.Join(err, s.close())
}

// rebuild makes the new state.
func (r *scan) rebuild(ctx context.Context) (err error) {
	if r.old, err = content.Open(r.report.Aside, content.Options{Ballast: -1, Floor: -1}); err != nil {
		return err
	}
	defer r.old.Close()
	s := &stateDir{dir: r.o.StateDir} // the lock is held already
	defer func() { err = errors.Join(err, s.close()) }()
	if s.table, err = table.Open(filepath.Join(s.dir, "names"), table.Options{}); err != nil {
		return err
	}
	if s.content, err = content.Open(s.dir, content.Options{}); err != nil {
		return err
	}
	// Modes were in the table: nobody gets more than there may have been.
	r.o.Umask = 0o077
	r.v = newVolume(nowhere{}, r.o, s)
	defer r.v.stop()
	err = r.v.update(func(v *Tx) error {
		v.table.Put(table.Root, v.inodeOf(providers.Info{Kind: providers.KindDir}))
		return nil
	})
	if err == nil {
		err = r.adoptAll(ctx)
	}
	if err == nil {
		err = r.old.EachKept(func(string) { r.report.Kept++ })
	}
	if err == nil {
		err = r.v.recovery().Sync()
	}
	return err
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
			r.report.Skipped = append(r.report.Skipped, Skipped{Path: f.path, Reason: err.Error()})
		}
	}
	return nil
}

// findPlaces finds the paths of content that does not say its own, because it was
// made in the last second or is being written: what can still be read of the old
// database may know. Of content that the backend has it asks for none.
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
	inodes := table.Salvage(filepath.Join(r.report.Aside, "names"), func(ino table.Ino) bool { return silent[ino] != nil })
	for ino, f := range silent {
		if n := inodes[ino]; n != nil && n.IsRegular() && len(n.Links) > 0 && (n.Writing || n.ContentVersion != n.Origin.ContentVersion) {
			f.path = placeIn(inodes, n.Links[0])
		}
	}
}

// placeIn is the path of a name; "" when a directory above it is not known.
func placeIn(inodes map[table.Ino]*table.Inode, l table.Link) string {
	path := l.Name
	for range maxDepth {
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

// adopt gives one content file its place, or puts it where a person finds it.
func (r *scan) adopt(ctx context.Context, f found) error {
	c, err := r.old.Open(f.ino)
	if err != nil {
		return err
	}
	defer c.Release()
	data := recovery.Raw(c)
	if at, perr := providers.ParseLocator(f.path); perr == nil && !f.partial {
		err := r.enter(ctx, at.String(), data, c.Mtime())
		if err == nil {
			r.report.Restored = append(r.report.Restored, at.String())
			return nil
		}
		if !errors.Is(err, syscall.EEXIST) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
	}
	name := recovery.SafePath(f.path) + "." + itoa(f.ino)
	if f.partial {
		name += ".partial"
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := recovery.WriteOut(filepath.Join(r.o.StateDir, recovery.Dir), name, data); err != nil {
		return err
	}
	r.report.Recovered = append(r.report.Recovered, recovery.Dir+"/"+name)
	return nil
}

// enter makes a file of the new working copy.
func (r *scan) enter(ctx context.Context, path string, data io.Reader, mtime int64) error {
	v := r.v
	at, name := splitPath(path)
	dir, err := r.dir(at)
	if err != nil {
		return err
	}
	locked := v.lock()
	rec, _ := locked.table.Name(dir, name)
	ino := locked.table.Alloc()
	locked.unlock()
	if rec.Ino != 0 {
		return syscall.EEXIST
	}
	if err := v.fill(ctx, ino, path, data); err != nil {
		v.store.Remove(ino)
		return err
	}
	f, err := v.store.Open(ino)
	if err != nil {
		return err
	}
	size, blocks := f.Size(), f.Blocks()
	f.Release()
	return v.update(func(v *Tx) error {
		n := v.inodeOf(providers.Info{Kind: providers.KindFile})
		n.State, n.Size, n.Blocks, n.Mtime = table.Whole, size, blocks, table.Stamp(mtime)
		n.Pulled = false // as far as anything tells
		v.table.Put(ino, n)
		v.setLocal(table.Link{Dir: dir, Name: name}, ino, false)
		v.recordVersion(v.table.Inode(ino), ino, "recovered")
		return nil
	})
}

// dir is a directory of the new working copy. The backend is taken to have it,
// as it has most; if not, a listing will tell.
func (r *scan) dir(path string) (table.Ino, error) {
	if path == "" {
		return table.Root, nil
	}
	at, name := splitPath(path)
	parent, err := r.dir(at)
	if err != nil {
		return 0, err
	}
	v := r.v
	var ino table.Ino
	err = v.update(func(v *Tx) error {
		rec, _ := v.table.Name(parent, name)
		if ino = rec.Ino; ino != 0 {
			if !v.table.Inode(ino).IsDir() {
				return syscall.ENOTDIR
			}
			return nil
		}
		n := v.inodeOf(providers.Info{Kind: providers.KindDir})
		ino = v.table.Alloc()
		v.table.Put(ino, n)
		l := table.Link{Dir: parent, Name: name}
		v.setLocal(l, ino, false)
		v.SetRemote(l, &table.Remote{Ino: ino, Kind: providers.KindDir, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen})
		return nil
	})
	return ino, err
}
