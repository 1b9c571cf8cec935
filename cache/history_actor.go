package cache

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/fs"
)

// who asks for a change.
type who struct {
	known    bool
	uid, pid uint32
}

func whoOf(op *fs.Op) who {
	if op == nil {
		return who{}
	}
	return who{true, op.UID, op.PID}
}

// onBehalf is do, asked for by op.
func onBehalf(op *fs.Op, do func(*Tx) error) func(*Tx) error {
	return func(v *Tx) error {
		v.by = whoOf(op)
		return do(v)
	}
}

// writes notes who opened a file for writing: what is flushed is theirs.
func (v *Volume) writes(oi *openInode, op *fs.Op) {
	locked := v.lock()
	defer locked.unlock()
	oi.by = whoOf(op)
}

// signRecord writes down who asked.
func (v *Tx) signRecord(r *history.Record) {
	by := v.by
	r.UID, r.PID = by.uid, by.pid
	if !by.known || by.pid == 0 {
		return
	}
	c, ok := v.history.commands[by.pid]
	if now := v.o.Now(); !ok || now.Sub(c.at) > time.Second {
		if len(v.history.commands) > 256 {
			clear(v.history.commands)
		}
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(int(by.pid)) + "/comm")
		c = command{strings.TrimSpace(string(name)), now}
		v.history.commands[by.pid] = c
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
