package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

func newHydrator(v *Volume) *files.Hydrator {
	return files.NewHydrator(files.HydratorOptions{
		Tree: v.tree, Remote: remoteContent{v}, Names: remoteNames{v},
		Now: v.o.Now, Patience: v.o.Patience / 2, Provider: v.o.Provider,
	})
}

// remoteContent is the remote of a volume, as files.Remote.
type remoteContent struct{ v *Volume }

// Read implements files.Remote. It also records the attributes that come with the content.
func (r remoteContent) Read(ctx context.Context, x table.Ino, at providers.Locator, o providers.ReadOptions) (providers.Content, error) {
	v := r.v
	began, asked := time.Now(), v.merger.AttrGen(x, at)
	c, err := v.p.Read(ctx, at, o)
	if err != nil {
		return c, err
	}
	v.prefetch.Took(time.Since(began))
	if err := v.merger.AttrsFetched(x, at, asked, c.Info); err != nil && !errors.Is(err, merge.ErrOvertaken) {
		c.Body.Close()
		return c, err
	}
	return c, nil
}

// Patiently implements files.Remote.
func (r remoteContent) Patiently(ctx context.Context, do func(ctx context.Context, moved func()) error) error {
	w := r.v.waits.For(nil, r.v.o.Patience/2)
	defer w.Close()
	defer context.AfterFunc(ctx, w.Close)()
	return errno.Translate(w.Cause(do(w, w.Moved)))
}

// Retry implements files.Remote.
func (r remoteContent) Retry(ctx context.Context, most time.Duration, hope func(error) bool, do func(ctx context.Context) error) error {
	return r.v.waits.RetryWhile(ctx, most, hope, do)
}

// fetchTarget fetches the target of a symbolic link. Its errors are those of
// [files.Hydrator.Fetch].
func (v *Volume) fetchTarget(ctx context.Context, x table.Ino) error {
	was := v.hydrator.Whereabouts(x)
	if !was.Known {
		return fs.ErrStale
	}
	var target []byte
	err := v.hydrator.Ask(ctx, x, was.ContentVersion, func(ctx context.Context, was files.Whereabouts) (err error) {
		target, _, err = providers.Fetch(ctx, v.p, was.At, providers.ReadOptions{Version: was.Version, Length: maxTarget + 1})
		return err
	})
	if err != nil {
		return err
	}
	if len(target) == 0 || len(target) > maxTarget {
		return fmt.Errorf("%s: a link with a target of %d bytes: %w", was.At, len(target), providers.ErrCorrupt)
	}
	return v.update(func(v *Tx) error {
		if n := v.Edit(x); n != nil && n.Target == "" {
			n.Target, n.Size = string(target), int64(len(target))
		}
		return nil
	})
}

// maxTarget is the longest target of a symbolic link that Linux takes.
const maxTarget = 4095

// staleOnce turns an error that a version is gone into fs.ErrStale, which has the kernel look the
// name up again: once for each state of the inode.
func (v *Volume) staleOnce(err error) error {
	gone := (*files.GoneError)(nil)
	if !errors.As(err, &gone) {
		return err
	}
	locked := v.lock()
	defer locked.unlock()
	if !v.sentBack.Once(locked.View, gone.Ino, gone) {
		return err
	}
	return fmt.Errorf("%w: %v", fs.ErrStale, err)
}
