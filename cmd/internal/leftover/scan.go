package leftover

import (
	"context"
	"errors"
	"os"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/clone"
)

// Scanned is the content that a Scan recovered.
type Scanned struct {
	cache.ScanReport
	// Unread is why unpushed commits may be lost, except for their files.
	Unread string `json:"unread,omitempty"`
}

// Scan is [cache.Scan] of the working copy in a directory. It also asks the clone which
// commits are lost: the new database alone does not know.
func Scan(ctx context.Context, dir string, force bool) (out Scanned, err error) {
	_, was := cache.Inspect(copyOf(dir), 1)
	out.ScanReport, err = cache.Scan(ctx, copyOf(dir), force, clone.Lost(dir))
	if err != nil {
		return out, err
	}
	r, err := Inspect(dir, 1)
	out.Unread = r.Unread
	if _, gone := os.Stat(clone.PathOf(dir)); out.Unread == "" && errors.Is(was, cache.ErrDamaged) && clone.IsKept(dir) && errors.Is(gone, os.ErrNotExist) {
		out.Unread = "the clone is gone, and the old database cannot say whether it had any"
	}
	return out, err
}
