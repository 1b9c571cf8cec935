package fs

// An Op is one request of the kernel: its caller, and whether the kernel has interrupted it. It
// is good until the call that it was given to returns.
//
// It is no context.Context on purpose. The kernel interrupts a request for any signal
// of the caller, and a Go program is signalled by its own scheduler all the time: a call
// that ended then would fail with EINTR where no local disk does. A volume gives up for a
// caller that is being killed.
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
