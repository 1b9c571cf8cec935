package cache

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// pulls is what is known of pulls, and of opens that they concern.
type pulls struct {
	sentBack files.SentBack
	pulling  *pulling // the pull that is under way
}

// loadDir makes sure that the names of a directory are known and can be
// believed. op nil: for ourselves, with all patience.
func (v *Volume) loadDir(op *fs.Op, dir table.Ino) error { return v.look(op, dir, false) }

// look is loadDir; strict waits for an answer where loadDir shows what is known.
func (v *Volume) look(op *fs.Op, dir table.Ino, strict bool) error {
	arrived := v.o.Now()
	for range 3 {
		a, limit, err := v.judge(dir, arrived, strict)
		if err != nil || a == listing.Fresh {
			return err
		}
		if op == nil && a == listing.Unknown {
			limit = -1
		}
		began, err := v.shareListing(op, dir, limit)
		switch {
		case errors.Is(err, listing.ErrTimedOut) && a == listing.Unknown:
			return errAway
		case errors.Is(err, listing.ErrTimedOut):
			v.belief.Overdue(limit)
			return nil
		case a != listing.Unknown && merge.IsUndecided(err),
			a == listing.Stale && errors.Is(err, fs.ErrUnavailable),
			a != listing.Unknown && !strict && errors.Is(err, table.ErrFull):
			return nil // what is known is shown: of it something may be removed, to make room
		case err != nil:
			return err
		case a != listing.Unknown && arrived.Sub(began) < v.o.Policy.TTL:
			return nil // new enough when we came
		}
	}
	return nil
}

// errAway says that a directory was never listed, and that the backend has not
// answered for so long that nobody waits for it.
var errAway = fmt.Errorf("the directory was never listed, and the backend does not answer: %w", fs.ErrUnavailable)

// judge says what a look at a directory that came at a time is to do, see
// [listing.Belief.Judge].
func (v *Volume) judge(dir table.Ino, arrived time.Time, strict bool) (listing.Freshness, time.Duration, error) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(dir)
	switch {
	case n == nil:
		return 0, 0, errors.Join(fs.ErrStale, locked.table.Err())
	case !n.IsDir():
		return 0, 0, syscall.ENOTDIR
	}
	a, limit := v.belief.Judge(dir, n, arrived, strict)
	return a, limit, nil
}

// shareListing renews a directory, or waits for the listing of it that is under way, for
// limit at most; less than 0: to its end. That ends when it stands still for half of the
// patience. It reports when the listing began.
func (v *Volume) shareListing(op *fs.Op, dir table.Ino, limit time.Duration) (time.Time, error) {
	ctx := v.waits.For(op, 0)
	defer ctx.Close()
	began, err := v.listings.Do(ctx, dir, limit, func() listing.Run {
		w := v.waits.For(nil, v.o.Patience/2)
		var pages atomic.Uint64
		came := func() {
			pages.Add(1)
			w.Moved()
		}
		return listing.Run{Work: func() error { return w.Cause(v.renew(w, dir, came)) }, End: w.Close, Pages: pages.Load}
	})
	return began, errno.Translate(err)
}

// lookFor is how long a look really waits that is to wait so long.
func (v *Volume) lookFor(d time.Duration) time.Duration {
	if v.o.looks != nil {
		return v.o.looks(d)
	}
	return d
}

// answered notes that the backend answered a listing, and how fast; or, with an error,
// that it did not in that time.
func (v *View) answered(took time.Duration, err error) {
	switch {
	case err == nil:
		if v.belief.Answered(took) {
			v.send.Rouse()
		}
	case isSilence(err) || errors.Is(err, waiting.ErrPatience):
		v.belief.Unanswered(took, err)
	}
}

// listRoot has the names of the root here, and fresh, before somebody asks.
func (v *Volume) listRoot() {
	if err := v.loadDir(nil, table.Root); err != nil {
		v.o.Log.Debug("the root is listed when somebody looks", "err", err)
	}
}

// isSilence reports whether an error says nothing of what was asked for: the
// backend cannot be reached, or does not know us any more, which is no reason to
// doubt what it said before.
func isSilence(err error) bool {
	retry := providers.KindOf(err).Retry
	return retry == providers.RetryLater || retry == providers.RetryLogin
}

// freshen is called before a file is opened: its version is asked for with the
// listing of its directory, if that is too old; strict as in look. fs.ErrStale says
// that the name leads elsewhere now.
func (v *Volume) freshen(op *fs.Op, x table.Ino, strict bool) error {
	if v.o.Policy.TTL == 0 {
		return v.renamed(x)
	}
	last := table.Ino(0)
	for {
		locked := v.lock()
		dir, ok := locked.validatedBy(x)
		locked.unlock()
		if !ok {
			return v.renamed(x)
		}
		switch err := v.look(op, dir, strict); {
		case err == nil:
			return v.renamed(x)
		case dir == last || !errors.Is(err, fs.ErrStale):
			return err
		}
		last = dir // a rename of ours ended: its remote name is in another directory
	}
}

// validatedBy is the directory at the backend whose listing says whether an inode's
// content is still what is there: best one where it stays, since a place that it leaves
// may be gone by now. What was changed here is not asked for: it is compared when it is
// sent.
func (v *View) validatedBy(x table.Ino) (dir table.Ino, ok bool) {
	n := v.table.Inode(x)
	if n == nil || len(n.Links) == 0 || n.Writing {
		return 0, false
	}
	for _, l := range n.RemoteLinks {
		rec, _ := v.table.Name(l.Dir, l.Name)
		switch {
		case rec.Remote == nil || rec.Remote.ContentVersion != n.ContentVersion:
		case rec.Ino == x:
			return l.Dir, true
		case !ok:
			dir, ok = l.Dir, true
		}
	}
	return dir, ok
}

// renamed tells, once, that a pull gave the name of an inode to another.
func (v *Volume) renamed(x table.Ino) error {
	locked := v.lock()
	defer locked.unlock()
	if n := locked.table.Inode(x); n != nil && len(n.Links) == 0 && n.LostName != nil && locked.pulls.sentBack.Once(locked.View, x, nil) {
		return fs.ErrStale
	}
	return nil
}
