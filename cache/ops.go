package cache

import (
	"context"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/ops"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// kernelOps are the requests of the kernel.
type kernelOps = ops.Operations

func newKernelOps(v *Volume) *kernelOps {
	o := ops.Options{
		Tree: v.tree, Side: v.side, Abandon: v.abandon, Report: v.chores.Report,
		Update: func(by files.Caller, do func(*local.Tx) error) error {
			return v.update(func(v *Tx) error {
				v.by = by
				return do(v.local)
			})
		},
		Store: v.store, Open: v.open, Opener: v.opener, Hydrator: v.hydrator, Prefetch: v.prefetch, Syncs: v.tableSync,
		Belief: v.belief, Ahead: v.listings.Ahead, Provider: v.p, Capabilities: v.caps, NoWait: v.o.Policy.NoWait,
		Remote:  ops.Remote{Load: v.listings.Load, Freshen: v.listings.Freshen, FetchAttrs: v.fetchAttrs, FetchTarget: v.fetchTarget, Reach: v.reaching},
		Uploads: ops.Uploads{WaitForContent: v.sent.Content, WaitForNames: v.sent.Names, IsUnsaved: v.pending.IsUnsaved},
	}
	if v.submodules != nil {
		o.Remote.Submodule = v.submodule
	}
	return ops.New(o)
}

// reaching runs an operation of a program that may have to wait for the remote.
func (v *Volume) reaching(op *fs.Op, do func(ctx context.Context) error) error {
	w := v.waits.For(op, 0)
	defer w.Close()
	err := v.hydrator.Follow(w, func() error { return do(w) })
	return errno.Translate(w.Cause(v.staleOnce(err)))
}

// submodule is ops.Remote.Submodule.
func (v *Volume) submodule(op *fs.Op, at providers.Locator) (sub providers.Locator, found bool, err error) {
	w := v.waits.For(op, v.o.Patience)
	defer w.Close()
	sub, found, err = v.submodules.Submodule(w, at)
	return sub, found, w.Cause(err)
}

// fetchAttrs is ops.Remote.FetchAttrs.
func (v *Volume) fetchAttrs(op *fs.Op, x table.Ino, needs bool) error {
	if v.belief.IsFailing() || !v.merger.HasUnknownAttrs(x) {
		return nil
	}
	limit := v.o.Patience
	if !needs {
		limit = v.o.looks(listing.MostWait)
	}
	w := v.waits.For(op, limit)
	defer w.Close()
	return v.staleOnce(v.merger.FetchAttrsToWrite(w, x))
}
