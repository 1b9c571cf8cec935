package merge

import (
	"context"
	"errors"
	"math"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Deletions by others are seen by a pull, which looks at the whole tree, or by looks at one
// directory after the other, as each becomes due. Such a look at an emptied bucket sees a part,
// which is little by itself. So the deletions of looks are added up, and a look does not decide
// what a person may have to decide: its deletions are left until a pull has seen the whole, which
// halts or applies all. The same holds as long as a halt stands.

// countDeleted adds the deletions of a merge to the sum; a pull of the whole tree resets it.
func (m *Merge) countDeleted(v *Tx) {
	switch {
	case m.Whole:
		massdelete.SetLately(v, 0)
	case !m.First:
		massdelete.SetLately(v, massdelete.Lately(v)+m.deleted)
	}
}

// ErrPart says that a look sees so many deletions that a pull, which is under way, has to judge
// them.
var ErrPart = providers.Kinded(errors.New("so many names are gone on the remote that a pull has to judge it"), fs.ErrUnavailable)

// IsUndecided reports whether a look left its decision to a pull, or to a person.
func IsUndecided(err error) bool {
	return errors.Is(err, massdelete.ErrHalted) || errors.Is(err, ErrPart)
}

// CheckPull halts a pull that deletes too much. While a halt stands, each look starts a pull of
// the whole tree, to find out whether the halt still holds.
func (m *Merge) CheckPull(v *Tx, head revision.Held) error {
	h := v.o.Guard.Halts(v.View).Halted(massdelete.Pull)
	if h != nil && !m.Whole && v.o.Looks {
		v.o.Guard.PullWhole(v.View)
	}
	if m.halt != nil || m.deleted == 0 || m.First {
		return m.halt
	}
	switch {
	case m.Whole:
	case v.o.Guard.IsPulling(v.View) && !m.mayDelete(v):
		return ErrPart
	case h != nil:
		return m.stop(v, h.Reason, h.Deleted)
	}
	d := massdelete.Deletion{Names: m.deleted, RootBefore: max(m.root, 0)}
	if m.root > 0 {
		d.RootAfter = massdelete.CountRoot(v)
	}
	if !m.Whole {
		d.Names += massdelete.Lately(v)
	}
	d.Done = d.Names
	reason, unseen := massdelete.TooMuch(v, d)
	if len(unseen) > 0 && !m.mayDelete(v) {
		if d.More = m.seek(v, head, unseen); m.Asks() {
			return nil // until that is known
		}
		reason, _ = massdelete.TooMuch(v, d)
	}
	return m.stop(v, reason, m.deleted)
}

// mayDelete reports whether any number of names may be deleted.
func (m *Merge) mayDelete(v *Tx) bool {
	return m.Deletions == revision.Kept || v.o.Guard.Halts(v.View).IsConfirmed(massdelete.Pull)
}

// manyBelow is the number of names below which they are deleted first, and counted afterwards.
const manyBelow = 1000

// tooMuchBelow halts a pull that is about to delete a directory with so many names in it that the
// guard would halt it in the end: to take away a million names first, and to bring them back,
// costs gigabytes. It reports whether it did.
func (m *Merge) tooMuchBelow(v *Tx, dir table.Ino) bool {
	if m.within > 0 || m.First || m.mayDelete(v) {
		return false
	}
	below, _ := massdelete.CountBelow(v, dir, math.MaxInt)
	if below < manyBelow {
		return false
	}
	// m.deleted counts the directory already, and the table still has it.
	d := massdelete.Deletion{Names: m.deleted + below, Done: m.deleted - 1}
	reason, unseen := massdelete.TooMuch(v, d)
	if len(unseen) > 0 {
		return false
	}
	m.halt = m.stop(v, reason, d.Names)
	return m.halt != nil
}

// stop halts for a reason, or, without one, as long as most of the names that a halt was for are
// still missing: new entries do not mend an accident. A look leaves it to a pull.
func (m *Merge) stop(v *Tx, reason string, deleted int) error {
	h := v.o.Guard.Halts(v.View).Halted(massdelete.Pull)
	switch {
	case m.mayDelete(v):
		return nil
	case reason == "" && h != nil && h.Deleted > 0 && 2*deleted > h.Deleted:
		reason, deleted = h.Reason, h.Deleted
	case reason == "":
		return nil
	}
	if !m.Whole && v.o.Looks {
		v.o.Guard.PullWhole(v.View)
		if h == nil {
			return ErrPart
		}
		reason = h.Reason
	}
	return v.o.Guard.Check(v.View, reason, deleted)
}

// seek asks for the names of directories. The remote's names in directories that this merge has
// brought are counted, since the merge may come to nothing.
func (m *Merge) seek(v *Tx, head revision.Held, dirs []table.Ino) (names int) {
	for _, dir := range dirs {
		at, ok := v.RemotePathOf(dir)
		if !ok {
			continue
		}
		if a, ok := m.look(query{question: question{at: at, what: askNames}, head: head}); ok {
			names += a.count
		}
	}
	return names
}

// countNames makes the names of a directory at the remote known, or counts them, in a directory
// that is not known itself, and below.
func (i *inquiry) countNames(head revision.Held, at providers.Locator) (count int, err error) {
	v := i.v
	locked := v.lock()
	dir, known := locked.DirAtRemotePath(at)
	locked.unlock()
	if known {
		return 0, v.o.Remote.List(i.ctx, head, dir)
	}
	dirs := []providers.Locator{at}
	for range massdelete.MaxUnseen {
		if len(dirs) == 0 {
			break
		}
		n, more, err := i.countIn(dirs[0])
		if err != nil {
			return 0, err
		}
		dirs, count = append(dirs[1:], more...), count+n
	}
	return count, nil
}

// countIn lists a directory that is not known locally; one that is gone has no entries.
func (i *inquiry) countIn(at providers.Locator) (count int, dirs []providers.Locator, err error) {
	err = i.v.o.Volume.Retry(i.ctx, func(ctx context.Context) error {
		count, dirs = 0, nil
		for opts := (providers.ListOptions{}); ; {
			page, err := i.remote.List(ctx, at, opts)
			if err = providers.PageError(opts, err); err != nil {
				return err
			}
			count += len(page.Entries)
			for k := range page.Entries {
				if e := &page.Entries[k]; e.Kind == providers.KindDir && len(dirs) < massdelete.MaxUnseen {
					dirs = append(dirs, e.Locator)
				}
			}
			if opts.Token = page.Next; opts.Token == "" {
				return nil
			}
		}
	})
	if NotThere(err) {
		err = nil
	}
	return count, dirs, err
}
