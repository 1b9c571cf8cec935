package cache

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/providers"
)

// maxImpliedChecks is how many new directories of a listing are looked at again. Where
// there are more, somebody has made a tree.
const maxImpliedChecks = 16

// verifyImpliedDirs looks again at directories that are new in a listing. Where directories are
// only what keys lie below, some services show a file that is just being made or
// deleted as one (MinIO does). Taken for true it would have to be deleted again
// before a directory above it can go, and there is nothing that could be deleted.
func (h *remoteDir) verifyImpliedDirs(w *waiting.Context, p providers.Provider) error {
	if h.first || !h.v.caps.ImpliedDirs {
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
		if err := h.v.verifyImplied(w, p, h.diffs[i].Info.Locator); errors.Is(err, providers.ErrNotExist) {
			delete(h.seen, maphash.String(h.seed, h.diffs[i].Name))
			h.diffs = slices.Delete(h.diffs, i, i+1)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// verifyImplied asks whether something is there.
func (v *Volume) verifyImplied(w *waiting.Context, p providers.Provider, l providers.Locator) error {
	return v.waits.Retry(w, func(ctx context.Context) error {
		_, err := p.Stat(ctx, l)
		return err
	})
}
