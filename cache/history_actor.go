package cache

import (
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/fs"
)

// callerOf is the process that asks for an operation, if any does.
func callerOf(op *fs.Op) files.Caller {
	if op == nil {
		return files.Caller{}
	}
	return files.Caller{Known: true, UID: op.UID, PID: op.PID}
}

// onBehalf is do, asked for by op.
func onBehalf(op *fs.Op, do func(*Tx) error) func(*Tx) error {
	return func(v *Tx) error {
		v.by = callerOf(op)
		return do(v)
	}
}

// writes notes who opened a file for writing: what is flushed is theirs.
func (v *Volume) writes(oi *files.OpenInode, op *fs.Op) {
	locked := v.lock()
	defer locked.unlock()
	oi.SetWriter(locked.View, callerOf(op))
}

// Actor says on whose behalf files change, for the history.
type Actor = history.Actor

// SetActor says on whose behalf what changes from now on does.
func (v *Volume) SetActor(a Actor) { v.history.SetActor(a) }
