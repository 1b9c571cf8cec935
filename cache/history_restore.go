package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// RestoreOptions say what is brought back.
type RestoreOptions struct {
	// Path is a file, or a directory with all below; "" is everything. A
	// directory is brought back where it is, wherever it was.
	Path string

	// To is the state to go back to.
	To State

	// DryRun changes nothing.
	DryRun bool

	// Refuse is asked before a path is changed; an error skips it. nil: none.
	Refuse func(path string) error
}

// RestoreReport says what a Restore did, by path.
type RestoreReport struct {
	Restored []string  `json:"restored,omitempty"`
	Removed  []string  `json:"removed,omitempty"` // what was not there at that time; the history has it
	Skipped  []Skipped `json:"skipped,omitempty"`
}

// OtherFileError says that a version is one of another file.
type OtherFileError struct{ Version, Path, Of string }

func (e *OtherFileError) Error() string {
	return fmt.Sprintf("version %s is of %s, not of %s", e.Version, e.Of, e.Path)
}

// Restore brings files back as they were. That is a change like any other: it
// is sent to the backend, programs that have the file open keep what they have,
// and what it replaces or removes goes to the history, from which nothing is
// taken away. What cannot be brought back is skipped and reported; an error
// means that not even that could be found out.
func (v *Volume) Restore(ctx context.Context, o RestoreOptions) (RestoreReport, error) {
	o.Path = strings.Trim(o.Path, "/")
	var report RestoreReport
	if v.o.ReadOnly {
		return report, fmt.Errorf("restore: %w", fs.ErrReadOnly)
	}
	pl, err := v.past.Plan(ctx, o.Path, o.To)
	if err != nil {
		return report, fmt.Errorf("restore: %w", err)
	}
	if len(pl.Items)+len(pl.Remove)+len(pl.Unsure) == 0 {
		if found, _ := v.past.IsNow(ctx, o.Path); !found {
			return report, fmt.Errorf("restore: %s: now as well as then %w", o.Path, past.ErrNotThere)
		}
	}
	if len(pl.Items) == 1 && pl.Items[0].Of != "" && pl.Items[0].Of != o.Path {
		return report, fmt.Errorf("restore: %w", &OtherFileError{o.To.Version, o.Path, pl.Items[0].Of})
	}
	if err := v.carryOut(ctx, &o, pl, &report); err != nil {
		return report, err
	}
	if o.DryRun {
		return report, nil
	}
	if err := v.sent(ctx, report.Restored); err != nil {
		return report, fmt.Errorf("restored here, but the backend does not have it yet: %w", err)
	}
	return report, nil
}

// carryOut does what a plan says, and reports it. What could not be brought
// back to where it was is not taken away from where it is.
func (v *Volume) carryOut(ctx context.Context, o *RestoreOptions, pl past.Plan, report *RestoreReport) error {
	failed := map[table.Ino]string{}
	for _, it := range pl.Items {
		done, err := v.restoreItem(ctx, o, it)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed[it.Ino] = it.Path
		}
		report.note(&report.Restored, it.Path, done, err)
	}
	for _, it := range slices.Backward(pl.Remove) { // a directory after what is in it
		if it.Path == o.Path && it.Was != "" {
			report.Skipped = append(report.Skipped, Skipped{Path: it.Path, Reason: "it was " + it.Was + " then", Was: it.Was})
			continue
		}
		if to := failed[it.Ino]; to != "" {
			report.Skipped = append(report.Skipped, Skipped{Path: it.Path, Reason: "it could not be brought back to " + to})
			continue
		}
		done, err := v.removeItem(ctx, o, it)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		report.note(&report.Removed, it.Path, done, err)
	}
	slices.Sort(report.Removed)
	report.Skipped = append(report.Skipped, pl.Unsure...)
	return nil
}

// sent waits until the backend has what was restored, as a close does.
func (v *Volume) sent(ctx context.Context, paths []string) error {
	op := &fs.Op{Cancel: ctx.Done()}
	for _, path := range paths {
		_, ino, err := v.find(ctx, path)
		if err != nil || ino == 0 {
			continue // it went meanwhile
		}
		if err := v.waitForContent(op, ino); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if v.o.Policy.NoWait {
		return nil
	}
	return v.waitForNames(op)
}

func (r *RestoreReport) note(list *[]string, path string, done bool, err error) {
	switch {
	case err != nil:
		r.Skipped = append(r.Skipped, Skipped{Path: path, Reason: err.Error()})
	case done:
		*list = append(*list, path)
	}
}

var errSame = errors.New("already in that state")

// restoreItem brings one thing back, and reports whether there was anything to
// do.
func (v *Volume) restoreItem(ctx context.Context, o *RestoreOptions, it past.Item) (done bool, err error) {
	isThere, err := v.past.IsNowSo(ctx, it)
	if err != nil || isThere {
		return false, err
	}
	if it.IsGone() {
		return false, ErrNotKept
	}
	if it.Target, err = v.past.Target(ctx, it); err != nil {
		return false, err
	}
	if o.Refuse != nil {
		if err := o.Refuse(it.Path); err != nil {
			return false, err
		}
	}
	if o.DryRun {
		err := v.past.Check(it)
		return err == nil, err
	}
	if err := v.bringHere(ctx, it.Path); err != nil {
		return false, err
	}
	switch it.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		_, err = v.makeDir(ctx, it.Path)
	case syscall.S_IFREG:
		err = v.restoreFile(ctx, it)
	case syscall.S_IFLNK:
		err = v.enterAt(ctx, it, 0, func(v *Tx, n *table.Inode) { n.Target, n.Size = it.Target, int64(len(it.Target)) })
	default:
		return false, fs.ErrUnsupported
	}
	return err == nil, err
}

// restoreFile gives a path a file with the content of a version.
func (v *Volume) restoreFile(ctx context.Context, it past.Item) error {
	r, size, err := v.past.Open(it)
	if err != nil {
		return err
	}
	defer r.Close()
	made, err := files.Make(ctx, v.tree, v.store, it.Path, io.LimitReader(r, size))
	if err != nil {
		return err
	}
	err = v.enterAt(ctx, it, made.Ino, func(v *Tx, n *table.Inode) {
		n.State, n.Size, n.Blocks = table.Whole, made.Size, made.Blocks
	})
	if err != nil {
		v.store.Remove(made.Ino)
	}
	return err
}

// enterAt gives a path a new inode, of a number of its own (0: another). What was there goes
// to the history; a file hands on its mode, owner and attributes.
func (v *Volume) enterAt(ctx context.Context, it past.Item, ino table.Ino, fill func(*Tx, *table.Inode)) error {
	at, name := past.Split(it.Path)
	dir, err := v.makeDir(ctx, at)
	if err != nil {
		return err
	}
	if err := checkName(name); err != nil {
		return err
	}
	l := table.Link{Dir: dir, Name: name}
	return v.update(func(v *Tx) error {
		parent := v.table.Inode(dir)
		if parent == nil {
			return fs.ErrStale
		}
		rec, _ := v.table.Name(l.Dir, l.Name)
		n := v.newInode(&fs.Op{UID: v.o.Owner.UID, GID: v.o.Owner.GID}, parent, it.Mode)
		n.Mode = it.Mode
		old := v.table.Inode(rec.Ino)
		switch {
		case old != nil && old.IsDir():
			return syscall.EISDIR
		case old != nil && old.Mode&syscall.S_IFMT == n.Mode&syscall.S_IFMT:
			n.Mode, n.UID, n.GID, n.Xattrs = old.Mode, old.UID, old.GID, old.Xattrs
			n.Mode = attrs.TakeMode(n.Mode, it.Attr)
		}
		if ino == 0 {
			ino = v.table.Alloc()
		}
		fill(v, n)
		if old != nil {
			if err := v.notes.Ended(l, rec.Ino, history.WhyRestored); err != nil {
				return err
			}
		}
		v.enter(l, ino, n)
		if n.IsRegular() {
			v.notes.Version(v.table.Inode(ino), ino, history.WhyRestored)
		} else {
			v.notes.Made(l, ino, history.WhyRestored)
		}
		if old != nil {
			v.MarkStaleDentry(l, rec.Ino)
			v.NameLost(rec.Ino)
		}
		v.tellOf(l)
		v.wrote(l)
		return nil
	})
}

// tellOf tells the kernel of a name that it does not know to have changed.
func (v *Tx) tellOf(l table.Link) {
	v.Later(func() {
		v.notifier().EntryChanged(fs.Ino(l.Dir), l.Name)
		v.notifier().AttrChanged(fs.Ino(l.Dir))
	})
}

// makeDir is the directory of a path, made if it is missing, with those above.
func (v *Volume) makeDir(ctx context.Context, path string) (table.Ino, error) {
	if path == "" {
		return table.Root, nil
	}
	l, ino, err := v.find(ctx, path)
	if err != nil {
		return 0, err
	}
	if ino == 0 {
		at, name := past.Split(path)
		dir, err := v.makeDir(ctx, at)
		if err != nil {
			return 0, err
		}
		l = table.Link{Dir: dir, Name: name}
	}
	err = v.update(func(v *Tx) error {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if ino = rec.Ino; ino != 0 {
			if !v.table.Inode(ino).IsDir() {
				return syscall.ENOTDIR
			}
			return nil
		}
		parent := v.table.Inode(l.Dir)
		if parent == nil {
			return fs.ErrStale
		}
		ino = v.table.Alloc()
		n := v.newInode(&fs.Op{UID: v.o.Owner.UID, GID: v.o.Owner.GID, Umask: v.o.Umask}, parent, syscall.S_IFDIR|0o777)
		n.Loaded, n.Listed = true, n.Birth
		v.enter(l, ino, n)
		v.notes.Made(l, ino, history.WhyRestored)
		v.tellOf(l)
		return nil
	})
	return ino, err
}

// removeItem takes away what was not there; a directory only when it is empty.
func (v *Volume) removeItem(ctx context.Context, o *RestoreOptions, it past.Item) (bool, error) {
	l, ino, err := v.find(ctx, it.Path)
	if err != nil || ino != it.Ino {
		return false, err
	}
	if o.Refuse != nil {
		if err := o.Refuse(it.Path); err != nil {
			return false, err
		}
	}
	if o.DryRun {
		return true, nil
	}
	if err := v.bringHere(ctx, it.Path); err != nil {
		return false, err
	}
	err = v.change(nil, func(v *Tx) error {
		if rec, _ := v.table.Name(l.Dir, l.Name); rec.Ino != ino {
			return errSame
		}
		if it.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			if err := v.mayRemoveDir(ino); err != nil {
				return err
			}
		}
		v.remove(l, ino)
		v.tellOf(l)
		return nil
	})
	if errors.Is(err, errSame) {
		return false, nil
	}
	return err == nil, err
}
