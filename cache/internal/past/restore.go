package past

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Changes are the changes of a working copy that a restore consists of. Each is one like any
// other: it is sent to the remote, programs that have the file open keep the content that they
// have, and the history has the content that it replaces or removes.
type Changes interface {
	// MakeDir gives a name a directory, or finds its present one.
	MakeDir(l table.Link) (table.Ino, error)
	// Enter gives a name a new inode in place of its present one: a link, or a file with content
	// that the store has under the number of that inode.
	Enter(l table.Link, it Item, content files.Made) error
	// Remove removes a name, that of a directory only if it is empty. It reports whether the name
	// still had the item's inode.
	Remove(l table.Link, it Item) (bool, error)
	// Sent waits until the remote has all of it, and the content restored at some paths, if a
	// close would.
	Sent(ctx context.Context, paths []string) error
}

// RestoreOptions select the entries to bring back.
type RestoreOptions struct {
	// Path is a file, or a directory with all below; "" is everything. A directory is brought back
	// at its present path, wherever it was.
	Path string

	// To is the state to go back to.
	To State

	// DryRun changes nothing.
	DryRun bool

	// Refuse is asked before a path is changed; an error skips the path. nil: none is refused.
	Refuse func(path string) error
}

// RestoreReport says what a Restore did, by path.
type RestoreReport struct {
	Restored []string          `json:"restored,omitempty"`
	Removed  []string          `json:"removed,omitempty"` // did not exist then; the history has them
	Skipped  []history.Skipped `json:"skipped,omitempty"`
}

// OtherFileError says that a version is one of another file.
type OtherFileError struct{ Version, Path, Of string }

func (e *OtherFileError) Error() string {
	return fmt.Sprintf("version %s is of %s, not of %s", e.Version, e.Of, e.Path)
}

// Restore brings files back as they were, by changes that remove nothing from the history. Paths
// that cannot be brought back are skipped and reported; an error means that there is no plan, or
// that it was not carried out to its end, or not sent.
func (h *Past) Restore(ctx context.Context, to Changes, o RestoreOptions) (RestoreReport, error) {
	o.Path = strings.Trim(o.Path, "/")
	r := restoring{Past: h, ctx: ctx, to: to, o: o}
	pl, err := h.Plan(ctx, o.Path, o.To)
	if err != nil {
		return r.report, err
	}
	if len(pl.Items)+len(pl.Remove)+len(pl.Unsure) == 0 {
		if found, _ := h.IsNow(ctx, o.Path); !found {
			return r.report, fmt.Errorf("%s: now as well as then %w", o.Path, ErrNotThere)
		}
	}
	if len(pl.Items) == 1 && pl.Items[0].Of != "" && pl.Items[0].Of != o.Path {
		return r.report, &OtherFileError{o.To.Version, o.Path, pl.Items[0].Of}
	}
	if err := r.carryOut(pl); err != nil || o.DryRun {
		return r.report, err
	}
	if err := to.Sent(ctx, r.report.Restored); err != nil {
		return r.report, fmt.Errorf("restored locally, but the store does not have it yet: %w", err)
	}
	return r.report, nil
}

// restoring is a Restore under way.
type restoring struct {
	*Past
	ctx    context.Context
	to     Changes
	o      RestoreOptions
	report RestoreReport
}

// carryOut carries a plan out, and reports it. An inode that could not be brought back to its old
// path is not removed from its present one.
func (r *restoring) carryOut(pl Plan) error {
	report := &r.report
	failed := map[table.Ino]string{}
	for _, it := range pl.Items {
		done, err := r.bring(it)
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err != nil {
			failed[it.Ino] = it.Path
		}
		report.note(&report.Restored, it.Path, done, err)
	}
	for _, it := range slices.Backward(pl.Remove) { // a directory after its entries
		if it.Path == r.o.Path && it.Was != "" {
			report.Skipped = append(report.Skipped, history.Skipped{Path: it.Path, Reason: "it was " + it.Was + " then", Was: it.Was})
			continue
		}
		if to := failed[it.Ino]; to != "" {
			report.Skipped = append(report.Skipped, history.Skipped{Path: it.Path, Reason: "it could not be brought back to " + to})
			continue
		}
		done, err := r.remove(it)
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		report.note(&report.Removed, it.Path, done, err)
	}
	slices.Sort(report.Removed)
	report.Skipped = append(report.Skipped, pl.Unsure...)
	return nil
}

func (r *RestoreReport) note(list *[]string, path string, done bool, err error) {
	switch {
	case err != nil:
		r.Skipped = append(r.Skipped, history.Skipped{Path: path, Reason: err.Error()})
	case done:
		*list = append(*list, path)
	}
}

// bring brings one entry back, and reports whether there was anything to do.
func (r *restoring) bring(it Item) (done bool, err error) {
	isThere, err := r.IsNowSo(r.ctx, it)
	if err != nil || isThere {
		return false, err
	}
	if it.IsGone() {
		return false, history.ErrNotKept
	}
	if it.Target, err = r.Target(r.ctx, it); err != nil {
		return false, err
	}
	if err := r.mayChange(it); err != nil {
		return false, err
	}
	if r.o.DryRun {
		err := r.Check(it)
		return err == nil, err
	}
	if err := r.fetch(it.Path); err != nil {
		return false, err
	}
	switch it.kind() {
	case syscall.S_IFDIR:
		_, err = r.makeDir(it.Path)
	case syscall.S_IFREG:
		err = r.bringFile(it)
	case syscall.S_IFLNK:
		err = r.enter(it, files.Made{})
	default:
		return false, errors.New("not supported by this volume")
	}
	return err == nil, err
}

// mayChange asks whether a path may be changed.
func (r *restoring) mayChange(it Item) error {
	if r.o.Refuse == nil {
		return nil
	}
	return r.o.Refuse(it.Path)
}

// bringFile gives a path a file with the content of a version.
func (r *restoring) bringFile(it Item) error {
	content, size, err := r.Open(it)
	if err != nil {
		return err
	}
	defer content.Close()
	made, err := files.Make(r.ctx, r.Past.o.Tree, r.Past.o.Store, it.Path, io.LimitReader(content, size))
	if err != nil {
		return err
	}
	if made.Size != size {
		r.Past.o.Store.Remove(made.Ino)
		return fmt.Errorf("%w whole: %d bytes came instead of %d", history.ErrNotKept, made.Size, size)
	}
	if err := r.enter(it, made); err != nil {
		r.Past.o.Store.Remove(made.Ino)
		return err
	}
	return nil
}

func (r *restoring) enter(it Item, content files.Made) error {
	at, name := Split(it.Path)
	dir, err := r.makeDir(at)
	if err != nil {
		return err
	}
	return r.to.Enter(table.Link{Dir: dir, Name: name}, it, content)
}

// makeDir is the directory of a path, made if it is missing, with those above.
func (r *restoring) makeDir(path string) (table.Ino, error) {
	if path == "" {
		return table.Root, nil
	}
	l, ino, err := r.Past.o.Volume.Find(r.ctx, path)
	if err != nil {
		return 0, err
	}
	if ino == 0 {
		at, name := Split(path)
		dir, err := r.makeDir(at)
		if err != nil {
			return 0, err
		}
		l = table.Link{Dir: dir, Name: name}
	}
	return r.to.MakeDir(l)
}

// remove removes an entry that did not exist.
func (r *restoring) remove(it Item) (bool, error) {
	l, ino, err := r.Past.o.Volume.Find(r.ctx, it.Path)
	if err != nil || ino != it.Ino {
		return false, err
	}
	if err := r.mayChange(it); err != nil || r.o.DryRun {
		return err == nil, err
	}
	if err := r.fetch(it.Path); err != nil {
		return false, err
	}
	return r.to.Remove(l, it)
}

// fetch fetches the content of a file that is about to be replaced or removed, if it is not all
// local: the history takes only local content.
func (r *restoring) fetch(path string) error {
	_, ino, err := r.Past.o.Volume.Find(r.ctx, path)
	v := r.Past.o.Tree.Lock()
	n := v.Inode(ino)
	away := err == nil && n != nil && n.IsRegular() && n.State != table.Whole && n.Size > 0
	r.Past.o.Tree.Unlock()
	if !away {
		return nil
	}
	content, _, err := r.Past.o.Volume.Open(r.ctx, ino)
	if err != nil {
		return err
	}
	return content.Close()
}
