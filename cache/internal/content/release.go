package content

import (
	"context"
	"sync"
	"time"
)

// releases tells of files that cease to be in use, whose space can be had then.
type releases struct {
	mu      sync.Mutex
	next    chan struct{} // closed with the next one; nil: there is no waiter
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

// any reports that there are such files.
func (r *releases) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaving > 0
}

// gone tells of one release.
func (r *releases) gone() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		close(r.next)
		r.next = nil
	}
}

// releaseWait is how long a writer waits for files to be released: the kernel tells of a
// close after the program has gone on, and a fetch that was given up takes a moment to end.
const releaseWait = time.Second

// roomFor is room.take for a program that writes.
func (s *Store) roomFor(ctx context.Context, n int64) error {
	return s.afterReleases(ctx, func() error { return s.room.take(n) })
}

// afterReleases runs try for a program that would otherwise get an error that the disk is
// full. Before that, content that is just being released gets time, and try runs again.
func (s *Store) afterReleases(ctx context.Context, try func() error) error {
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

// isReleasing reports whether content that no program has changed is in use, or has just
// ceased to be: it cannot be known whether its release is on its way.
func (s *Store) isReleasing() bool { return s.released.any() || s.inodes.unchanged() }
