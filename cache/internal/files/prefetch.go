package files

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Prefetch of small files.
//
// Of a service that is far away a small file costs a round trip, whichever program asks. So
// when the files of one directory are opened one after another, in the order of names (in
// which a flat store lists them too), the next ones are fetched before they are opened. It
// begins with few, doubles as long as the fetched files are opened, and each time that they
// were not it takes more opens to begin again. A program that has read one directory that
// way, as grep -r does, is expected to read the next: in that one it begins with the first
// file, until in one of them the fetched files are not opened. Files that are large, local,
// or never sent are left out.
//
// Prefetch takes only spare capacity: of the budget, of the requests at once, and of the
// cache, where prefetched content is evicted first until a program has opened it.
const (
	PrefetchSize  = 1 << 20 // larger files are not prefetched
	PrefetchMost  = 64      // files of one directory that are not opened yet
	PrefetchLeast = 4       // at first
	prefetchBytes = 8 << 20 // in the files of one directory
	siblingNear   = 8       // how many names apart parallel threads open files

	seriesMost   = 64 // directories
	aheadFetches = 32 // requests at once

	// FarAway is the time that a request takes at a remote for which prefetch is worth while.
	FarAway = 2 * time.Millisecond
)

// Prefetch fetches small files before they are opened.
type Prefetch struct {
	o     PrefetchOptions
	slots chan struct{} // fetches under way
	any   atomic.Bool   // of is not empty

	// The lock of the tree guards the rest.
	dirs  map[table.Ino]*series
	of    map[table.Ino]*series // prefetched, or about to be, and not opened yet
	clock int                   // orders series by their last use
	span  int                   // the window of the last series that was read on; 0: none, or the guess after it was wrong
	guess *series               // the last that began because of span
	takes [8]time.Duration      // the time that the last reads took until they were answered
	reads int                   // how many there were
}

// PrefetchOptions are a Prefetch's settings and dependencies.
type PrefetchOptions struct {
	Tree    *tree.Tree
	Open    *OpenSet
	Content Unasked
	Context context.Context // ends with the working copy
	Go      func(func())    // runs in the background, until Context ends
	Log     *slog.Logger
	Far     time.Duration // the least time to an answer with which prefetch is worth while
}

// Unasked is the content of files, fetched before a program asks for it.
type Unasked interface {
	// MayPrefetch reports whether there is time and a remote for it.
	MayPrefetch(v *tree.View) bool
	// FetchUnasked fetches all of a file, and Unread has it be the first that is evicted.
	FetchUnasked(ctx context.Context, ino table.Ino) error
	Unread(ino table.Ino)
}

// NewPrefetch makes one that has seen no open.
func NewPrefetch(o PrefetchOptions) *Prefetch {
	return &Prefetch{o: o, slots: make(chan struct{}, aheadFetches), dirs: map[table.Ino]*series{}, of: map[table.Ino]*series{}}
}

// series is how far the reader of a directory has come.
type series struct {
	ctx    context.Context
	cancel context.CancelFunc
	used   int // by Prefetch.clock

	start string // the first name
	last  string // the furthest that was opened
	front string // the furthest that was fetched
	run   int    // opens in order
	need  int    // so many opens begin a prefetch

	window  int // how many files are prefetched
	begins  int // how many at first
	hits    int // prefetched files opened since the window grew
	pending map[table.Ino]int64
	bytes   int64 // in pending
}

// Took notes the time that a read took until it was answered.
func (s *Prefetch) Took(took time.Duration) {
	s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	s.takes[s.reads%len(s.takes)] = took
	s.reads++
}

// isFar reports whether the service is so far away that prefetch is worth while: the
// fastest of the last answers decides, since any can be late.
func (s *Prefetch) isFar() bool {
	known := s.takes[:min(s.reads, len(s.takes))]
	return len(known) > 0 && slices.Min(known) >= s.o.Far
}

// Opened is told of each open of a file for reading, before it waits for content; here says that
// all content is local. The files to be prefetched because of it are on their way then.
func (s *Prefetch) Opened(ino table.Ino, here bool) {
	if here && !s.any.Load() {
		return
	}
	v := s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	ahead := s.opened(ino)
	n := v.Inode(ino)
	if here && !ahead || n == nil || n.Size > PrefetchSize || len(n.Links) != 1 {
		return
	}
	l := n.Links[0]
	one := s.seriesOf(v, l.Dir)
	if ahead {
		one.hits++
	}
	if one.isNext(v, l) {
		one.run++
		one.last = max(one.last, l.Name)
	} else {
		one.begin(l.Name)
		s.drop(one)
	}
	if one.run >= one.need && s.isFar() && s.o.Content.MayPrefetch(v) {
		s.widen(one)
		s.fetchNext(v, one, l.Dir)
	}
}

// opened notes that a program uses an inode, and reports whether it was prefetched.
func (s *Prefetch) opened(ino table.Ino) bool {
	one := s.of[ino]
	if one == nil {
		return false
	}
	s.forget(one, ino)
	return true
}

// forget takes an inode from those that are not opened yet.
func (s *Prefetch) forget(one *series, ino table.Ino) {
	if s.of[ino] != one {
		return
	}
	one.bytes -= one.pending[ino]
	delete(one.pending, ino)
	delete(s.of, ino)
	s.any.Store(len(s.of) > 0)
}

// drop writes off the prefetched files of a series that were not opened.
func (s *Prefetch) drop(one *series) {
	for ino := range one.pending {
		s.forget(one, ino)
	}
}

// End is for a directory that is gone: its fetches under way are given up.
func (s *Prefetch) End(_ *tree.View, dir table.Ino) {
	if one := s.dirs[dir]; one != nil {
		one.cancel()
		s.drop(one)
		delete(s.dirs, dir)
	}
}

// seriesOf is the series of a directory, for which another one may be forgotten.
func (s *Prefetch) seriesOf(v *tree.View, dir table.Ino) *series {
	s.clock++
	one := s.dirs[dir]
	if one == nil {
		if len(s.dirs) >= seriesMost {
			s.End(v, s.oldest())
		}
		one = s.newSeries()
		one.ctx, one.cancel = context.WithCancel(s.o.Context)
		s.dirs[dir] = one
	}
	one.used = s.clock
	return one
}

// newSeries is one for a directory in which no file was read yet.
func (s *Prefetch) newSeries() *series {
	one := &series{need: 2, begins: PrefetchLeast, pending: map[table.Ino]int64{}}
	if s.guess != nil && s.guess.hits == 0 && s.guess.window == s.guess.begins {
		s.span = 0 // none of the last guess was read
	}
	if s.span > 0 {
		one.need, one.begins, s.guess = 1, max(PrefetchLeast, s.span/2), one
	}
	return one
}

func (s *Prefetch) oldest() (dir table.Ino) {
	least := s.clock + 1
	for d, one := range s.dirs {
		if one.used < least {
			dir, least = d, one.used
		}
	}
	return dir
}

// begin has a series start anew at a name. If its prefetched files were not used, it takes
// longer to begin.
func (s *series) begin(name string) {
	if len(s.pending) > 0 {
		s.need = min(2*s.need, PrefetchMost)
	}
	if s.run > 0 { // nor was the guess right
		s.need, s.begins = max(s.need, 2), PrefetchLeast
	}
	s.start, s.last, s.front = name, name, name
	s.run, s.window, s.hits = 1, 0, 0
}

// widen has more prefetched when at least half of it was used.
func (s *Prefetch) widen(one *series) {
	switch {
	case one.window == 0:
		one.window = one.begins
	case one.hits >= one.window/2:
		one.window, one.hits = min(2*one.window, PrefetchMost), 0
		one.need = 2
		s.span, s.guess = one.window, nil
	}
}

// isNext reports whether an open goes on with a series: its name is one of the next few, or
// one that others of the same reader have passed.
func (s *series) isNext(v *tree.View, l table.Link) bool {
	switch {
	case s.run == 0 || l.Name < s.start:
		return false
	case l.Name <= max(s.last, s.front):
		return true
	}
	near, left := false, siblingNear
	v.Names(l.Dir, max(s.last, s.front), func(name string, _ table.Name) bool {
		left--
		near = name == l.Name
		return !near && left > 0
	})
	return near
}

// fetchNext begins to fetch the next files of a directory, up to the window of the series,
// when half of that was opened.
func (s *Prefetch) fetchNext(v *tree.View, one *series, dir table.Ino) {
	if len(one.pending) > one.window/2 || one.bytes >= prefetchBytes {
		return
	}
	one.front = max(one.front, one.last)
	left := 4 * PrefetchMost // names that are looked at
	v.Names(dir, one.front, func(name string, rec table.Name) bool {
		one.front = name
		if n := v.Inode(rec.Ino); n != nil && s.isDistant(v, &rec, n) {
			one.pending[rec.Ino] = n.Size
			one.bytes += n.Size
			s.of[rec.Ino] = one
			s.o.Go(func() { s.run(one, rec.Ino) })
		}
		left--
		return left > 0 && len(one.pending) < one.window && one.bytes < prefetchBytes
	})
	s.any.Store(len(s.of) > 0)
}

// isDistant reports whether a name stands for a small file that is not open, and of which
// the remote has all and nothing is local.
func (s *Prefetch) isDistant(v *tree.View, rec *table.Name, n *table.Inode) bool {
	return n.IsRegular() && n.State == table.None && n.Size > 0 && n.Size <= PrefetchSize && len(n.Links) == 1 &&
		rec.Seq == 0 && rec.Remote != nil && rec.Remote.Ino == rec.Ino && rec.Remote.ContentVersion == n.ContentVersion &&
		s.of[rec.Ino] == nil && !s.o.Open.IsOpen(v, rec.Ino)
}

// run fetches a file that may be opened soon. A failure is not reported: an open of the
// file fetches it itself.
func (s *Prefetch) run(one *series, ino table.Ino) {
	err := s.fetch(one, ino)
	s.o.Tree.Lock()
	defer s.o.Tree.Unlock()
	switch {
	case s.of[ino] != one: // a program has opened it
	case err == nil:
		s.o.Content.Unread(ino)
	default:
		s.forget(one, ino)
		one.run, one.window = 0, 0 // no more of the series until it is begun again
		s.o.Log.Debug("a file was not fetched ahead", "ino", ino, "err", err)
	}
}

// fetch fetches a file, unless it was opened meanwhile.
func (s *Prefetch) fetch(one *series, ino table.Ino) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-one.ctx.Done():
		return one.ctx.Err()
	}
	s.o.Tree.Lock()
	wanted := s.of[ino] == one
	s.o.Tree.Unlock()
	if !wanted {
		return nil
	}
	return s.o.Content.FetchUnasked(one.ctx, ino)
}
