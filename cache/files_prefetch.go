package cache

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// Small files fetched ahead.
//
// Of a service that is far away a small file costs a round trip, whoever asks. So
// when the files of one directory are opened one after another, in the order of
// names (in which a flat store lists them too), the next ones are fetched before
// anybody opens them. It begins with few, doubles as long as what was fetched is
// opened, and each time that it was not it takes more opens to begin again. Who has
// read one directory that way, as grep -r does, is believed to read the next: there
// it begins with the first file, until in one of them the files ahead are not opened.
// Files that are large, or here, or of this machine only, are left out.
//
// What is fetched ahead takes what nobody else needs: of the budget, of the
// requests at once, and of the cache, where it is given up first until somebody
// has opened it.
const (
	siblingSize  = 1 << 20 // larger files are not fetched ahead
	siblingsMost = 64      // files of one directory that nobody has opened yet
	siblingBytes = 8 << 20 // in them
	siblingsMin  = 4       // at first
	siblingNear  = 8       // names apart that threads side by side open

	seriesMost   = 64                   // directories
	aheadFetches = 32                   // requests at once
	farAway      = 2 * time.Millisecond // what a request takes of a service for which all this is worth while
)

// filePrefetch are the directories in which somebody may be reading one file after
// another. The volume's lock guards them, but for what is atomic.
type filePrefetch struct {
	dirs  map[table.Ino]*series
	of    map[table.Ino]*series // what was fetched ahead, or is to be, and was not opened yet
	any   *atomic.Bool          // of is not empty; read without the lock
	clock int                   // orders series by their last use
	span  int                   // the window of the last series that was read on; 0: none, or the guess after it was wrong
	guess *series               // the last that began because of span
	takes [8]time.Duration      // what the last reads took until they were answered
	reads int                   // so many there were
}

// series is how far somebody has come in a directory.
type series struct {
	ctx    context.Context
	cancel context.CancelFunc
	used   int // by filePrefetch.clock

	start string // the first name
	last  string // the furthest that was opened
	front string // the furthest that was fetched
	run   int    // opens in order
	need  int    // so many begin it

	window  int // how many are fetched ahead
	begins  int // with how many
	hits    int // of these opened since the window grew
	pending map[table.Ino]int64
	bytes   int64 // in pending
}

func (s *filePrefetch) init(any *atomic.Bool) {
	s.dirs, s.of, s.any = map[table.Ino]*series{}, map[table.Ino]*series{}, any
}

// tookRead notes what a read took until it was answered.
func (v *Volume) tookRead(took time.Duration) {
	locked := v.lock()
	defer locked.unlock()
	s := &locked.filePrefetch
	s.takes[s.reads%len(s.takes)] = took
	s.reads++
}

// isFar reports whether the service is so far away that fetching ahead is worth while:
// the fastest of the last answers says so, since any can be late.
func (v *View) isFar() bool {
	s := &v.filePrefetch
	known := s.takes[:min(s.reads, len(s.takes))]
	return len(known) > 0 && slices.Min(known) >= v.o.far && !v.belief.IsFailing()
}

// sawOpen is told of each open of a file for reading, before it waits for content.
// What is to be fetched ahead because of it is on its way then.
func (v *Volume) sawOpen(oi *openInode) {
	here := oi.f.Whole()
	if here && !v.prefetched.Load() {
		return
	}
	locked := v.lock()
	defer locked.unlock()
	ahead := locked.filePrefetch.opened(oi.ino)
	n := locked.table.Inode(oi.ino)
	if here && !ahead || n == nil || n.Size > siblingSize || len(n.Links) != 1 {
		return
	}
	l := n.Links[0]
	s := locked.seriesOf(l.Dir)
	s.hits += btoi(ahead)
	if locked.follows(s, l) {
		s.run++
		s.last = max(s.last, l.Name)
	} else {
		s.begin(l.Name)
		locked.filePrefetch.drop(s)
	}
	if s.run >= s.need && locked.isFar() && !locked.closing {
		locked.filePrefetch.widen(s)
		locked.prefetchFiles(s, l.Dir)
	}
}

// opened notes that somebody uses an inode, and reports whether it was fetched
// ahead.
func (s *filePrefetch) opened(ino table.Ino) bool {
	one := s.of[ino]
	if one == nil {
		return false
	}
	s.forget(one, ino)
	return true
}

// forget takes an inode from those that nobody has opened.
func (s *filePrefetch) forget(one *series, ino table.Ino) {
	if s.of[ino] != one {
		return
	}
	one.bytes -= one.pending[ino]
	delete(one.pending, ino)
	delete(s.of, ino)
	s.any.Store(len(s.of) > 0)
}

// drop writes off what was fetched for a series and not opened.
func (s *filePrefetch) drop(one *series) {
	for ino := range one.pending {
		s.forget(one, ino)
	}
}

// end is for a directory that is gone: what is on its way for it is given up.
func (s *filePrefetch) end(dir table.Ino) {
	if one := s.dirs[dir]; one != nil {
		one.cancel()
		s.drop(one)
		delete(s.dirs, dir)
	}
}

// seriesOf is the series of a directory, for which another one may be forgotten.
func (v *View) seriesOf(dir table.Ino) *series {
	all := &v.filePrefetch
	all.clock++
	s := all.dirs[dir]
	if s == nil {
		if len(all.dirs) >= seriesMost {
			all.end(all.oldest())
		}
		s = all.newSeries()
		s.ctx, s.cancel = context.WithCancel(v.ctx)
		all.dirs[dir] = s
	}
	s.used = all.clock
	return s
}

// newSeries is one for a directory in which nobody has read yet.
func (s *filePrefetch) newSeries() *series {
	one := &series{need: 2, begins: siblingsMin, pending: map[table.Ino]int64{}}
	if s.guess != nil && s.guess.hits == 0 && s.guess.window == s.guess.begins {
		s.span = 0 // of the last guess nothing was read
	}
	if s.span > 0 {
		one.need, one.begins, s.guess = 1, max(siblingsMin, s.span/2), one
	}
	return one
}

func (s *filePrefetch) oldest() (dir table.Ino) {
	least := s.clock + 1
	for d, one := range s.dirs {
		if one.used < least {
			dir, least = d, one.used
		}
	}
	return dir
}

// begin has a series start anew at a name. If what it had fetched was not used, it
// takes longer to begin.
func (s *series) begin(name string) {
	if len(s.pending) > 0 {
		s.need = min(2*s.need, siblingsMost)
	}
	if s.run > 0 { // nor is it what was guessed
		s.need, s.begins = max(s.need, 2), siblingsMin
	}
	s.start, s.last, s.front = name, name, name
	s.run, s.window, s.hits = 1, 0, 0
}

// widen has more fetched ahead when at least half of it was used.
func (s *filePrefetch) widen(one *series) {
	switch {
	case one.window == 0:
		one.window = one.begins
	case one.hits >= one.window/2:
		one.window, one.hits = min(2*one.window, siblingsMost), 0
		one.need = 2
		s.span, s.guess = one.window, nil
	}
}

// follows reports whether an open goes on with a series: it is about the names that come
// next, or one that others of the same reader have passed.
func (v *View) follows(s *series, l table.Link) bool {
	switch {
	case s.run == 0 || l.Name < s.start:
		return false
	case l.Name <= max(s.last, s.front):
		return true
	}
	near, left := false, siblingNear
	v.table.Names(l.Dir, max(s.last, s.front), func(name string, _ table.Name) bool {
		left--
		near = name == l.Name
		return !near && left > 0
	})
	return near
}

// prefetchFiles begins to fetch what comes next in a directory, up to the window of the
// series, when half of that was opened.
func (v *View) prefetchFiles(s *series, dir table.Ino) {
	if len(s.pending) > s.window/2 || s.bytes >= siblingBytes {
		return
	}
	s.front = max(s.front, s.last)
	left := 4 * siblingsMost // names that are looked at
	v.table.Names(dir, s.front, func(name string, rec table.Name) bool {
		s.front = name
		if n := v.table.Inode(rec.Ino); n != nil && v.isDistant(&rec, n) {
			s.pending[rec.Ino] = n.Size
			s.bytes += n.Size
			v.filePrefetch.of[rec.Ino] = s
			v.background(func() { v.fetchAhead(s, rec.Ino) })
		}
		left--
		return left > 0 && len(s.pending) < s.window && s.bytes < siblingBytes
	})
	v.prefetched.Store(len(v.filePrefetch.of) > 0)
}

// isDistant reports whether a name stands for a small file of which the backend has all,
// nothing is here and which nobody has open.
func (v *View) isDistant(rec *table.Name, n *table.Inode) bool {
	return n.IsRegular() && n.State == table.None && n.Size > 0 && n.Size <= siblingSize && len(n.Links) == 1 &&
		rec.Seq == 0 && rec.Remote != nil && rec.Remote.Ino == rec.Ino && rec.Remote.ContentVersion == n.ContentVersion &&
		v.open[rec.Ino] == nil && v.filePrefetch.of[rec.Ino] == nil
}

// fetchAhead fetches a file that somebody may open soon. What fails is nobody's:
// who opens the file asks himself.
func (v *Volume) fetchAhead(s *series, ino table.Ino) {
	err := v.fetchUnasked(s, ino)
	locked := v.lock()
	defer locked.unlock()
	switch {
	case locked.filePrefetch.of[ino] != s: // somebody has opened it
	case err == nil:
		v.store.Unread(ino)
	default:
		locked.filePrefetch.forget(s, ino)
		s.run, s.window = 0, 0 // no more of it until it is begun again
		v.o.Log.Debug("a file was not fetched ahead", "ino", ino, "err", err)
	}
}

func (v *Volume) fetchUnasked(s *series, ino table.Ino) error {
	select {
	case v.fileSlots <- struct{}{}:
		defer func() { <-v.fileSlots }()
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	locked := v.lock()
	wanted := locked.filePrefetch.of[ino] == s
	locked.unlock()
	if !wanted {
		return nil // who opened it fetches it
	}
	oi, err := v.openContent(ino, forAhead)
	if err != nil {
		return err
	}
	err = oi.f.FetchAhead(s.ctx, &v.fileSlots)
	if cerr := v.closeContent(oi, false); err == nil {
		err = cerr
	}
	return err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
