package cache

import (
	"context"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/ops"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// kernelOps are the requests of the kernel.
type kernelOps = ops.Operations

func newKernelOps(v *Volume) *kernelOps {
	return ops.New(ops.Options{
		Tree: v.tree, Side: v.side, Abandon: func(ino table.Ino) { v.abandon(ino) }, Report: v.chores.Report,
		Update: func(by files.Caller, do func(*local.Tx) error) error {
			return v.update(func(v *Tx) error {
				v.by = by
				return do(v.local)
			})
		},
		Store: v.store, Open: v.held.open, Opener: v.opener, Hydrator: v.hydrator, Prefetch: v.prefetch, Syncs: v.tableSync,
		Belief: v.belief, Ahead: v.ahead, Provider: v.p, Capabilities: v.caps, HasSubmodules: v.submodules != nil,
		NoWait: v.o.Policy.NoWait, Remote: requests{v}, Uploads: requests{v},
	})
}

// requests is a volume as requests of the kernel need it, when they ask the remote or wait.
type requests struct{ v *Volume }

// Load implements ops.Remote.
func (r requests) Load(op *fs.Op, dir table.Ino) error { return r.v.loadDir(op, dir) }

// Freshen implements ops.Remote.
func (r requests) Freshen(op *fs.Op, ino table.Ino, strict bool) error {
	return r.v.freshen(op, ino, strict)
}

// FetchAttrs implements ops.Remote.
func (r requests) FetchAttrs(op *fs.Op, ino table.Ino) error { return r.v.fetchAttrsToWrite(op, ino) }

// FetchTarget implements ops.Remote.
func (r requests) FetchTarget(ctx context.Context, ino table.Ino) error {
	return r.v.fetchTarget(ctx, ino)
}

// Reach implements ops.Remote.
func (r requests) Reach(op *fs.Op, do func(ctx context.Context) error) error {
	w := r.v.wait(op, 0)
	defer w.close()
	err := r.v.hydrator.Follow(w, func() error { return do(w) })
	return translate(w.cause(r.v.staleOnce(err)))
}

// Submodule implements ops.Remote.
func (r requests) Submodule(op *fs.Op, at providers.Locator) (sub providers.Locator, found bool, err error) {
	w := r.v.wait(op, r.v.o.Patience)
	defer w.close()
	sub, found, err = r.v.submodules.Submodule(w, at)
	return sub, found, w.cause(err)
}

// WaitForContent implements ops.Uploads.
func (r requests) WaitForContent(op *fs.Op, ino table.Ino) error { return r.v.waitForContent(op, ino) }

// WaitForNames implements ops.Uploads.
func (r requests) WaitForNames(op *fs.Op) error { return r.v.waitForNames(op) }

// IsUnsaved implements ops.Uploads.
func (r requests) IsUnsaved(ino table.Ino) bool { return r.v.pending.IsUnsaved(ino) }
