package daemon

import (
	"context"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec/audit"
)

// What a commit, a pull and a push did, as who waits for it is told. One may make
// the others necessary, and each finds what is held anew: it is told once.

// pulled adds what a pull did.
func (k *syncer) pulled(r cache.PullReport, out *control.EventResult) {
	out.Pulled += r.Changed + r.Deleted
	if r.TakenBack { // what was committed before is no commit any more
		out.Committed, out.Revision = 0, string(r.Revision)
	}
	k.conflicts(r.Conflicts, out)
}

// committed adds what a commit did.
func (k *syncer) committed(r cache.CommitReport, out *control.EventResult) {
	out.HeldBack = max(out.HeldBack, len(r.HeldBack))
	if r.Committed {
		out.Committed += r.Changes
		out.Revision = string(r.Revision)
	}
	k.conflicts(r.Conflicts, out)
}

// pushed adds what a push did, and what came first.
func (k *syncer) pushed(r cache.PushReport, out *control.EventResult) {
	if r.Pull.Revision != "" { // ours are other commits than before
		out.Revision = string(r.Pull.Revision)
	}
	k.pulled(r.Pull, out)
	k.committed(r.Commit, out)
	if r.Pushed {
		out.Pushed++
		out.Revision = string(r.Revision)
	}
}

// eventConflict is not one of AIP-37's: a host may listen for it.
const eventConflict = "storage:conflict"

// maxConflictEvents bounds what one commit or pull emits.
const maxConflictEvents = 100

// conflicts adds those that a commit or pull found, also to the audit.
func (k *syncer) conflicts(paths []string, out *control.EventResult) {
	emitted := 0
	for _, path := range paths {
		if !out.Conflict(k.name+"/"+path) || emitted == maxConflictEvents {
			continue
		}
		emitted++
		k.emit(eventConflict, map[string]string{"path": path})
		err := k.audit.Write(audit.Conflict{Workspace: k.name, Path: path, Policy: string(k.sync.Conflict), Outcome: "found"})
		if err != nil {
			k.log.Error("the audit log cannot be written", "err", err)
		}
	}
}

// missed adds the conflicts that a close found since the last event, and that
// neither commit nor pull of this one told of.
func (k *syncer) missed(out *control.EventResult) {
	_ = k.copy.use(k.ctx, func(context.Context) error { // closed, it has told of them already
		k.conflicts(k.copy.UnreportedConflicts(), out)
		return nil
	})
}

// unresolved adds the conflicts that wait for a person: nothing of them is pushed.
func (k *syncer) unresolved(out *control.EventResult) {
	_ = k.copy.use(k.ctx, func(context.Context) error { // closed, it has told of them already
		all := k.copy.Conflicts()
		for _, c := range all {
			out.Conflict(k.name + "/" + c.Path)
		}
		out.HeldBack = max(out.HeldBack, len(all))
		return nil
	})
}
