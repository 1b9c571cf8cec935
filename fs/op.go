package fs

import (
	"context"
	"time"
)

// An Op is one request of the kernel: who asks, and whether he still waits. It
// is a context.Context that is done when the kernel interrupts the request; it
// is good until the call that it was given to returns. A Go program is
// interrupted by its own scheduler all the time, so a volume gives up only what
// can be repeated, and never a change that is under way.
//
// The zero Op is root, never interrupted, without a umask.
type Op struct {
	// Cancel is closed when the kernel interrupts the request. nil: never.
	Cancel <-chan struct{}

	UID, GID, PID uint32

	// Umask is the caller's umask, for calls that create an inode. It has not
	// been applied to the mode: a default ACL of the parent replaces it.
	Umask uint32

	// KillPriv says that the caller may not keep set-user-id, set-group-id
	// and capability bits of the file that this call writes to or truncates:
	// the volume clears them. The kernel does not say so for Allocate and
	// CopyRange.
	KillPriv bool
}

var _ context.Context = (*Op)(nil)

// Deadline says that a request of the kernel has none.
func (o *Op) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done is closed when the kernel interrupts the request.
func (o *Op) Done() <-chan struct{} { return o.Cancel }

// Err is context.Canceled once the request has been interrupted.
func (o *Op) Err() error {
	select {
	case <-o.Cancel:
		return context.Canceled
	default:
		return nil
	}
}

// Value is always nil: a request carries nothing but its fields.
func (o *Op) Value(any) any { return nil }
