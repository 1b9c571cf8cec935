package content

import (
	"context"
	"sync"
	"time"
)

// releases tells of files that are not in use any more, whose space can be had then.
type releases struct {
	mu      sync.Mutex
	next    chan struct{} // closed with the next one; nil: nobody waits
	leaving int           // files that were released and still have a descriptor
}

// wait is a channel that is closed with the next release.
func (r *releases) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = make(chan struct{})
	}
	return r.next
}

// leave counts files that begin or cease to be released with descriptors in use.
func (r *releases) leave(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving += n
}

// gone tells of one.
func (r *releases) gone() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		close(r.next)
		r.next = nil
	}
}

// releaseWait is how long a writer waits for files to be released: the kernel tells of
// a close after the program has gone on, and a fetch that was given up takes a moment
// to end.
const releaseWait = time.Second

// roomFor is Room for a program that writes.
func (s *Store) roomFor(ctx context.Context, n int64) error {
	return afterReleases(ctx, s, func() error { return s.room.take(n) })
}

// afterReleases runs try for a program that is told next that the disk is full. Before
// that, content that is just being released gets the time to be, and try runs again.
func afterReleases(ctx context.Context, s *Store, try func() error) error {
	released := s.released.wait()
	err := try()
	if !IsFull(err) || !s.isReleasing() {
		return err
	}
	limit := time.NewTimer(releaseWait)
	defer limit.Stop()
	for IsFull(err) {
		select {
		case <-released:
		case <-limit.C:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		released = s.released.wait()
		err = try()
	}
	return err
}

// isReleasing reports whether content that no program has changed is in use, or is just
// not any more: nobody can tell whether its release is on its way.
func (s *Store) isReleasing() bool {
	s.released.mu.Lock()
	leaving := s.released.leaving > 0
	s.released.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		leaving = leaving || f.writes.Load() == 0 && f.size.Load() > 0
	}
	return leaving
}
