package cache

import (
	"context"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/offline"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// Errors about the state of a working copy.
var (
	// ErrInUse says that another process has the state directory.
	ErrInUse = state.ErrInUse
	// ErrDamaged says that the database of a working copy cannot be read: Scan makes another from
	// its content files.
	ErrDamaged = table.ErrDamaged
	// ErrNotDamaged says that there is nothing to rebuild.
	ErrNotDamaged = offline.ErrNotDamaged
)

// Reports about a working copy that is not mounted.
type (
	OfflineReport = offline.Report
	Unsaved       = offline.Unsaved
	Exported      = offline.Exported
	Also          = offline.Also
	ScanReport    = offline.ScanReport
	ContentUsage  = offline.ContentUsage
	Lost          = offline.Lost
	// Skipped is something that was asked for and not done.
	Skipped = history.Skipped
)

// Inspect is [offline.Inspect].
func Inspect(stateDir string, limit int) (OfflineReport, error) {
	return offline.Inspect(stateDir, limit)
}

// Export is [offline.Export].
func Export(ctx context.Context, stateDir, into string, also Also) (Exported, error) {
	return offline.Export(ctx, stateDir, into, also)
}

// Scan is [offline.Scan].
func Scan(ctx context.Context, stateDir string, force bool, lost Lost) (ScanReport, error) {
	return offline.Scan(ctx, stateDir, force, lost)
}

// ContentOf is [offline.ContentOf]: [Volume.ContentUsage] of a working copy that is not mounted.
func ContentOf(stateDir string, clear bool, lost Lost) (u ContentUsage, freed int64, err error) {
	return offline.ContentOf(stateDir, clear, lost)
}

// MakeRoomIn is [offline.MakeRoomIn].
func MakeRoomIn(stateDir string, n int64, lost Lost) (freed int64, err error) {
	return offline.MakeRoomIn(stateDir, n, lost)
}
