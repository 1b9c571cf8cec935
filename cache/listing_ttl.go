package cache

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// How long names and content are believed.
//
// With a TTL a directory counts as fresh for that long after its listing began,
// and what is in it, with it: one listing serves all. Then the next look asks
// the backend, and all who look meanwhile wait for the same answer. Who looks
// up names or attributes does so for a moment only, by what listings have taken
// lately: a backend that is slow or gone must not hold up an ls of what is
// known. Then names are shown as they were last seen, and marked stale in the
// status. An open is stricter: it waits at least mostWait for the answer, unless
// the backend is known not to give one, and then gives what is here (content
// that is not here waits for its fetch). Longer than staleFor after the last
// answer it always waits, and fails when none comes in half of the patience; and
// a look at names waits however slow listings are, unless there was no answer
// lately. An open that shows nothing of what is there, and does not go on at its end,
// is no stricter than a look, as those of touch(1) and of >: what others made of the
// content meanwhile is found when it is sent.
//
// Without a TTL everything is fresh until Pull.
//
// Of a directory that was never listed nothing can be said: not that a name is
// there, nor that it is free. The kernel looks a name up before it makes it, and
// does not say what for, so that who was told that a name is free could be a
// reader of a file that is there. So all wait for the listing, for half of the
// patience, counted from when the backend ceased to answer: who comes later does
// not wait all of it again, and after that gets the error at once, while the
// listing is tried for the next.
const (
	staleFor = 60 * time.Second

	leastWait = 30 * time.Millisecond // for a listing that usually comes at once
	mostWait  = time.Second
	kernelMax = time.Hour
)

// puller is what bringing changes here has to remember.
type puller struct {
	headLock revision.HeadLock
}

// pulls is what is known of listings and pulls, and of how the remote answers.
type pulls struct {
	shared  map[table.Ino]*sharedListing
	told    map[table.Ino]toldStale // inodes that an open was sent away from
	failing time.Time               // since when listings are late, or not answered; zero: they are answered
	gone    time.Time               // since when they fail, however long one waits; zero: they do not
	usual   time.Duration           // what a listing takes
	pulling *pulling                // the pull that is under way
}

// freshness says how far a directory can be believed.
type freshness uint8

const (
	isFresh   freshness = iota
	isStale             // usable while the backend is slow
	isOld               // its content is not usable without an answer
	isUnknown           // never listed
)

// freshnessOf is how far a directory can be believed.
func (v *Volume) freshnessOf(dir table.Ino, n *table.Inode, now time.Time) freshness {
	if !n.Loaded {
		return isUnknown
	}
	if v.o.Policy.TTL == 0 || dir != table.Root && len(n.RemoteLinks) == 0 || n.From != "" {
		return isFresh // nobody else can change what the backend does not have
	}
	switch since := now.Sub(timeOf(n.Listed)); {
	case since < v.o.Policy.TTL && since >= 0:
		return isFresh
	case since < staleFor && since >= 0:
		return isStale
	}
	return isOld
}

// kernelTTL is how long the kernel may believe the names of a directory and what is said
// of them: the rest of its time.
func (v *View) kernelTTL(dir table.Ino) time.Duration {
	ttl := v.o.Policy.TTL
	n := v.table.Inode(dir)
	if ttl == 0 || n == nil || dir != table.Root && len(n.RemoteLinks) == 0 {
		return kernelMax
	}
	return max(0, min(ttl, ttl-v.o.Now().Sub(timeOf(n.Listed))))
}

// loadDir makes sure that the names of a directory are known and can be
// believed. op nil: for ourselves, with all patience.
func (v *Volume) loadDir(op *fs.Op, dir table.Ino) error { return v.look(op, dir, false) }

// look is loadDir; strict waits for an answer where loadDir shows what is known.
func (v *Volume) look(op *fs.Op, dir table.Ino, strict bool) error {
	arrived := v.o.Now()
	for range 3 {
		a, limit, err := v.judge(dir, arrived, strict)
		if err != nil || a == isFresh {
			return err
		}
		if op == nil && a == isUnknown {
			limit = -1
		}
		began, err := v.startListing(op, dir, limit, func(w *waiting) error { return v.renew(w, dir) })
		switch {
		case errors.Is(err, errTimedOut) && a == isUnknown:
			return errAway
		case errors.Is(err, errTimedOut):
			v.overdue(limit)
			return nil
		case a != isUnknown && isUndecided(err),
			a == isStale && errors.Is(err, fs.ErrUnavailable),
			a != isUnknown && !strict && errors.Is(err, table.ErrFull):
			return nil // what is known is shown: of it something may be removed, to make room
		case err != nil:
			return err
		case a != isUnknown && arrived.Sub(began) < v.o.Policy.TTL:
			return nil // new enough when we came
		}
	}
	return nil
}

// errAway says that a directory was never listed, and that the backend has not
// answered for so long that nobody waits for it.
var errAway = fmt.Errorf("the directory was never listed, and the backend does not answer: %w", fs.ErrUnavailable)

// judge says what is to be done about a directory for somebody who came at a
// time, and how long that may take.
func (v *Volume) judge(dir table.Ino, arrived time.Time, strict bool) (freshness, time.Duration, error) {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(dir)
	switch {
	case n == nil:
		return 0, 0, errors.Join(fs.ErrStale, locked.table.Err())
	case !n.IsDir():
		return 0, 0, syscall.ENOTDIR
	}
	now := arrived
	if listed := timeOf(n.Listed); listed.After(arrived) && !listed.After(v.o.Now()) {
		now = listed // meanwhile, which is as new as can be wanted, however long it took
	}
	a, p := v.freshnessOf(dir, n, now), &locked.pulls
	switch {
	case a == isUnknown:
		return a, locked.firstLook(now), nil
	case a == isFresh || strict && a == isOld:
		return a, -1, nil
	case !p.failing.IsZero():
		return isStale, 0, nil
	case a == isOld && p.usual == 0: // how fast it is shows now
		return isStale, mostWait, nil
	case a == isOld:
		return isStale, max(leastWait, 4*p.usual), nil
	case strict:
		return a, max(mostWait, 4*p.usual), nil
	case p.usual > mostWait:
		return a, 0, nil
	}
	return a, p.moment(), nil
}

// moment is as long as a listing that comes as usual may take.
func (p *pulls) moment() time.Duration { return min(max(leastWait, 4*p.usual), mostWait) }

// firstLook is how long to wait for the listing of a directory that was never listed;
// less than 0: to its end.
func (v *View) firstLook(now time.Time) time.Duration {
	p := &v.pulls
	if p.gone.IsZero() {
		return -1
	}
	return max(p.moment(), v.o.Patience/2-now.Sub(p.gone))
}

// overdue notes that an answer did not come in the time that one takes: nobody
// waits for it until there is one.
func (v *Volume) overdue(waited time.Duration) {
	locked := v.lock()
	defer locked.unlock()
	if p := &locked.pulls; waited > 0 && p.failing.IsZero() {
		p.failing = v.o.Now()
	}
}

// answered notes that the backend answered a listing, and how fast; or, with an error,
// that it did not in that time.
func (v *View) answered(took time.Duration, err error) {
	p := &v.pulls
	if err == nil && !p.gone.IsZero() {
		v.o.Log.Info("the backend answers again", "after", v.o.Now().Sub(p.gone).Round(time.Second))
		v.engine.rouse(v)
	}
	switch {
	case err == nil && p.usual == 0:
		p.usual, p.failing, p.gone = took, time.Time{}, time.Time{}
		return
	case err == nil:
		took = min(took, 4*max(p.usual, leastWait/4)) // an outage is not usual
		p.usual, p.failing, p.gone = (3*p.usual+took)/4, time.Time{}, time.Time{}
		return
	case !isSilence(err) && !errors.Is(err, errPatience):
		return
	}
	since := v.o.Now().Add(-took)
	if p.failing.IsZero() {
		p.failing = since
	}
	if p.gone.IsZero() {
		v.o.Log.Warn("the backend does not answer: what is known is shown", "err", err)
		p.gone = since
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

// staleSince is since when the backend does not answer, so that what is shown may be
// old; zero: it does.
func (v *View) staleSince() time.Time { return v.pulls.failing }

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
	if n := locked.table.Inode(x); n != nil && len(n.Links) == 0 && n.LostName != nil && locked.tellStale(x, nil) {
		return fs.ErrStale
	}
	return nil
}
