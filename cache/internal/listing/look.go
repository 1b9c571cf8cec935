package listing

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Look is Load; strict waits for an answer where Load shows the known names.
func (ls *Listings) Look(op *fs.Op, dir table.Ino, strict bool) error {
	arrived := ls.o.Belief.Now()
	for range 3 {
		a, limit, err := ls.Judge(dir, arrived, strict)
		if err != nil || a == Fresh {
			return err
		}
		if op == nil && a == Unknown {
			limit = -1
		}
		began, err := ls.shareListing(op, dir, limit)
		switch {
		case errors.Is(err, ErrTimedOut) && a == Unknown:
			return errAway
		case errors.Is(err, ErrTimedOut):
			ls.o.Belief.Overdue(limit)
			return nil
		case a != Unknown && merge.IsUndecided(err),
			a == Stale && errors.Is(err, fs.ErrUnavailable),
			a != Unknown && !strict && errors.Is(err, table.ErrFull):
			return nil // known names are shown: a program may remove some, to make room
		case err != nil:
			return err
		case a != Unknown && arrived.Sub(began) < ls.o.Belief.TTL:
			return nil // new enough when this look began
		}
	}
	return nil
}

// errAway says that a directory was never listed, and that the remote has not answered for so long
// that no look waits for it.
var errAway = providers.Kinded(errors.New("the directory was never listed, and the store does not answer"), fs.ErrUnavailable)

// Judge says how a look that came at a time is to treat a directory, see [Belief.Judge].
func (ls *Listings) Judge(dir table.Ino, arrived time.Time, strict bool) (Freshness, time.Duration, error) {
	v := ls.o.Tree.Lock()
	defer ls.o.Tree.Unlock()
	n := v.Inode(dir)
	switch {
	case n == nil:
		return 0, 0, errors.Join(fs.ErrStale, v.Err())
	case !n.IsDir():
		return 0, 0, syscall.ENOTDIR
	}
	a, limit := ls.o.Belief.Judge(dir, n, arrived, strict)
	return a, limit, nil
}

// shareListing renews a directory, or waits for the listing of it that is under way, for limit at
// most; less than 0: to its end. That ends when it makes no progress for half of the patience. It
// reports when the listing began.
func (ls *Listings) shareListing(op *fs.Op, dir table.Ino, limit time.Duration) (time.Time, error) {
	ctx := ls.o.Waits.For(op, 0)
	defer ctx.Close()
	began, err := ls.shared.Do(ctx, dir, limit, func() Run {
		w := ls.o.Waits.For(nil, ls.o.Patience)
		var pages atomic.Uint64
		came := func() {
			pages.Add(1)
			w.Moved()
		}
		return Run{Work: func() error { return waiting.Cause(w, ls.renew(w, dir, came)) }, End: w.Close, Pages: pages.Load}
	})
	return began, errno.Translate(err)
}

// answered notes that the remote answered a listing, and how fast; or, with an error, that it did
// not in that time.
func (ls *Listings) answered(v *tree.View, took time.Duration, err error) {
	switch {
	case err == nil:
		if ls.o.Belief.Answered(took) {
			ls.o.Back(v)
		}
	case isSilence(err) || errors.Is(err, waiting.ErrPatience):
		ls.o.Belief.Unanswered(took, err)
	}
}

// isSilence reports whether an error is no answer to the question: the remote cannot be reached,
// or does not accept the credentials any more, which is no reason to doubt its earlier answers.
func isSilence(err error) bool {
	retry := providers.KindOf(err).Retry
	return retry == providers.RetryLater || retry == providers.RetryLogin
}

// Freshen is called before a file is opened: its version is asked for with the listing of its
// directory, if that is too old; strict as in Look. fs.ErrStale says that the name leads elsewhere
// now.
func (ls *Listings) Freshen(op *fs.Op, x table.Ino, strict bool) error {
	if ls.o.Belief.TTL == 0 {
		return ls.renamed(x)
	}
	last := table.Ino(0)
	for {
		v := ls.o.Tree.Lock()
		dir, ok := validatedBy(v, x)
		ls.o.Tree.Unlock()
		if !ok {
			return ls.renamed(x)
		}
		switch err := ls.Look(op, dir, strict); {
		case err == nil:
			return ls.renamed(x)
		case dir == last || !errors.Is(err, fs.ErrStale):
			return err
		}
		last = dir // a rename of ours ended: its remote name is in another directory
	}
}

// validatedBy is the directory at the remote whose listing says whether an inode's content is
// still the remote's: best one where it stays, since a place that it leaves may be gone by now.
// Content that was changed locally is not asked for: it is compared when it is sent.
func validatedBy(v *tree.View, x table.Ino) (dir table.Ino, ok bool) {
	n := v.Inode(x)
	if n == nil || len(n.Links) == 0 || n.Writing {
		return 0, false
	}
	for _, l := range n.RemoteLinks {
		rec, _ := v.Name(l.Dir, l.Name)
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
func (ls *Listings) renamed(x table.Ino) error {
	v := ls.o.Tree.Lock()
	defer ls.o.Tree.Unlock()
	if n := v.Inode(x); n != nil && len(n.Links) == 0 && n.LostName != nil && ls.o.SentBack.Once(v, x, nil) {
		return fs.ErrStale
	}
	return nil
}

// Find walks to a local path. An ino of 0 says that the name is free; the directory of the link is
// 0 when not even that exists.
func (ls *Listings) Find(ctx context.Context, path string) (l table.Link, ino table.Ino, err error) {
	ino = table.Root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			return l, ino, nil
		}
		if ino == 0 {
			return table.Link{}, 0, nil
		}
		if err := ctx.Err(); err != nil {
			return l, 0, err
		}
		if err := ls.Load(nil, ino); err != nil {
			return l, 0, err
		}
		v := ls.o.Tree.Lock()
		l = table.Link{Dir: ino, Name: name}
		rec, _ := v.Name(l.Dir, l.Name)
		ino = rec.Ino
		ls.o.Tree.Unlock()
	}
	return l, ino, nil
}
