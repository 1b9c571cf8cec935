package cache

import (
	"context"
	"fmt"
	"io"
	iofs "io/fs"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/providers"
)

// readPreviousHead reads a version that the backend had at a place in an earlier
// revision. iofs.ErrNotExist when none of them that are known had it.
func (v *Volume) readPreviousHead(ctx context.Context, at providers.Locator, version providers.Version) (io.ReadCloser, error) {
	locked := v.lock()
	all := revision.PreviousHeads(locked.table)
	locked.unlock()
	s, ok := providers.As[providers.Snapshotter](v.p)
	if !ok {
		all = nil
	}
	for _, r := range all {
		then, err := s.At(ctx, r)
		if err != nil {
			continue // it has been thrown away
		}
		c, err := then.Read(ctx, at, providers.ReadOptions{Version: version})
		if err == nil {
			return &past.Body{ReadCloser: c.Body, Revision: then}, nil
		}
		then.Close()
		if !merge.NotThere(err) && !files.IsElsewhere(err) {
			return nil, errno.Translate(err)
		}
	}
	return nil, fmt.Errorf("no revision that is known has that version: %w", iofs.ErrNotExist)
}
