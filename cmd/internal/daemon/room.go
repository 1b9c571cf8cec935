package daemon

import (
	"path/filepath"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/room"
	"github.com/wsmount/wsmount/mountspec/audit"
)

// MakeRoom implements room.Volume. Once the volume is closed, or about to be, it frees nothing:
// the lock holder may have asked for room itself, so the call does not wait for the lock.
func (w *workingCopy) MakeRoom(n int64) bool {
	if !w.mu.TryRLock() {
		return false
	}
	defer w.mu.RUnlock()
	return !w.closed && w.Volume.MakeRoom(n)
}

// ContentUsage implements room.Volume.
func (w *workingCopy) ContentUsage() (u cache.ContentUsage) {
	if !w.mu.TryRLock() {
		return u
	}
	defer w.mu.RUnlock()
	if w.closed {
		return u
	}
	return w.Volume.ContentUsage()
}

// OpenAudit opens the audit log of a state directory; now is nil for the time of the
// machine. While the disk is full, r frees space for its records.
func OpenAudit(root string, r *room.Room, now func() time.Time) (*audit.Log, error) {
	return audit.Open(filepath.Join(root, "audit.log"), audit.Options{Now: now, WhileFull: r.WhileFull})
}
