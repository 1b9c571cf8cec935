package daemon

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/pinned"
	"github.com/wsmount/wsmount/fs"
)

// activityPins is the background work that fetches pinned paths.
const activityPins cache.Activity = "fetch pinned"

// fetchPinned makes the content at a path local. told may be nil if no caller waits.
func (w *workingCopy) fetchPinned(ctx context.Context, at string, told *pinned.Progress) (f pinned.Fetched, err error) {
	err = w.use(ctx, func(ctx context.Context) (err error) {
		f, err = pinned.Fetch(ctx, w.Volume, at, told)
		return err
	})
	return f, err
}

// startPinner keeps pinned paths on the local disk from now on.
func (w *workingCopy) startPinner() {
	w.pinner.Store(pinned.Start(pinned.Options{Pins: w.pins, Ended: func(err error) { w.ended(activityPins, err) },
		Fetch: func(ctx context.Context, at string) error {
			_, err := w.fetchPinned(ctx, at, nil)
			return err
		}}))
}

// pulled returns the callback for the files that a pull brought; it calls next too.
func (w *workingCopy) pulled(next func(string)) func(string) {
	return func(file string) {
		w.pinner.Load().Changed(file)
		if next != nil {
			next(file)
		}
	}
}

// pin pins or unpins a path.
func (c *copies) pin(ctx context.Context, r control.CacheRequest) (out control.CacheResult, err error) {
	out.Schema, out.Copies = control.CacheSchema, []control.CacheCopy{}
	p, w, at, err := c.locate(r.Path)
	if err != nil {
		return out, err
	}
	if r.Unpin {
		was, err := w.pins.Remove(at)
		if err == nil && !was {
			err = exit.New(exit.Unresolvable, "/%s is not pinned", within(p, at)).Hint("`wsmount cache show` lists what is")
		}
		return out, err
	}
	if err = w.pins.Add(at); err != nil {
		return out, err
	}
	f, err := w.fetchPinned(ctx, at, &w.fetching)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		_, failed := w.pins.Remove(at)
		return out, errors.Join(refusal(fmt.Errorf("there is nothing to pin at %w", err)), failed)
	case err != nil:
		w.pinner.Load().Changed(at)
		return out, exit.New(codeOf(err), "it is pinned, and not all of it is on the local disk yet: %w", err).Hint("it is fetched in the background; `wsmount status %s` says while that fails", c.mountpoint)
	}
	out.Pinned = &control.Pinned{Files: f.Files, Bytes: f.Bytes}
	return out, nil
}

// unlimited is the size that a bucket reports: it has no limit. Some programs
// cannot count with larger numbers.
const unlimited = 1 << 50

// Statfs implements fs.Volume. A bucket has no limit, unlike the disk of its working copy.
// Available remains the space that programs can fill now, until more has arrived in the bucket.
func (w *workingCopy) Statfs(op *fs.Op, ino fs.Ino) (fs.Statfs, error) {
	st, err := w.Volume.Statfs(op, ino)
	if err != nil || !w.isBucket || st.Frsize == 0 {
		return st, err
	}
	st.Blocks = unlimited / uint64(st.Frsize)
	st.Bfree, st.Files = st.Blocks, st.Ffree
	return st, nil
}
