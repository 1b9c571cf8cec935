package cache

import (
	"os"
	"strconv"
	"strings"
	"time"

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

// signRecord writes down who asked.
func (v *Tx) signRecord(r *history.Record) {
	by := v.by
	r.UID, r.PID = by.UID, by.PID
	if !by.Known || by.PID == 0 {
		return
	}
	c, ok := v.history.commands[by.PID]
	if now := v.o.Now(); !ok || now.Sub(c.at) > time.Second {
		if len(v.history.commands) > 256 {
			clear(v.history.commands)
		}
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(int(by.PID)) + "/comm")
		c = command{strings.TrimSpace(string(name)), now}
		v.history.commands[by.PID] = c
	}
	r.Cmd = c.name
}

// Actor says on whose behalf files change, for the history.
type Actor = history.Actor

// SetActor says on whose behalf what changes from now on does.
func (v *Volume) SetActor(a Actor) {
	locked := v.lock()
	defer locked.unlock()
	if a != v.history.actor {
		v.history.actor, v.history.since = a, locked.table.NextSeq()
	}
}

// actsAnew reports whether the actor has changed since a record: what it has is a state
// that somebody may go back to, however soon the next follows.
func (v *View) actsAnew(id uint64, r *history.Record) bool {
	return r == nil || id < v.history.since || r.Actor != v.history.actor
}
