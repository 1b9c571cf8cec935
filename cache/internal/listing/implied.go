package listing

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Learn is ListOnce for a caller that holds the head.
func (ls *Listings) Learn(ctx context.Context, head revision.Held, dir table.Ino) error {
	w := ls.o.Waits.For(nil, ls.o.Patience)
	defer w.Close()
	defer context.AfterFunc(ctx, w.Close)()
	return ls.ListOnce(w, head, dir)
}

// maxImpliedChecks is how many new directories of a listing are looked at again. Where there are
// more, a whole tree was made.
const maxImpliedChecks = 16

// verifyImpliedDirs looks again at directories that are new in a listing. Where directories are
// only key prefixes, some services show a file that is just being made or deleted as one (MinIO
// does). If it were believed it would have to be deleted again before a directory above it can go,
// and there is no key to delete.
func (h *remoteDir) verifyImpliedDirs(w revision.Waiting, p providers.Provider) error {
	if h.first || !h.of.o.Capabilities.ImpliedDirs {
		return nil
	}
	var dirs []int
	for i, d := range h.diffs {
		if d.Info != nil && d.Info.Kind == providers.KindDir {
			dirs = append(dirs, i)
		}
	}
	if len(dirs) > maxImpliedChecks {
		return nil
	}
	for _, i := range slices.Backward(dirs) {
		err := h.of.o.Waits.Retry(w, func(ctx context.Context) error {
			_, err := p.Stat(ctx, h.diffs[i].Info.Locator)
			return err
		})
		if errors.Is(err, providers.ErrNotExist) {
			delete(h.seen, maphash.String(h.seed, h.diffs[i].Name))
			h.diffs = slices.Delete(h.diffs, i, i+1)
		} else if err != nil {
			return err
		}
	}
	return nil
}
