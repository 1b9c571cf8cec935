package daemon

import (
	"context"
	"log/slog"
	"sync"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/providers"
)

// A reporter reports the outcome of a commit, a pull and a push to the request that
// waits for it, to the bus and to the audit. One of the three may require the others,
// and each finds the same held back changes again: these are reported once.
type reporter struct {
	name     string                   // of the workspace
	conflict mountspec.ConflictPolicy // for the audit
	copy     *workingCopy
	bus      *lifecycle.Bus
	audit    *audit.Log
	log      *slog.Logger

	mu     sync.Mutex // guards the fields below
	commit bool       // a commit by the syncer is under way, and not reported yet
	held   *heldPush  // set while a push by the syncer is under way
}

// pulled adds the result of a pull.
func (r *reporter) pulled(p cache.PullReport, out *control.EventResult) {
	out.Pulled += p.Changed + p.Deleted
	if p.TakenBack { // the commits before became changes again
		out.Committed, out.Revision = 0, string(p.Revision)
	}
	r.conflicts(p.Conflicts, out)
}

// committed adds the result of a commit.
func (r *reporter) committed(c cache.CommitReport, out *control.EventResult) {
	out.HeldBack = max(out.HeldBack, len(c.HeldBack))
	if c.Committed {
		out.Committed += c.Changes
		out.Revision = string(c.Revision)
	}
	r.conflicts(c.Conflicts, out)
}

// pushed adds the result of a push, and of the pull and commit before it.
func (r *reporter) pushed(p cache.PushReport, out *control.EventResult) {
	if p.Pull.Revision != "" { // the pull rewrote the local commits
		out.Revision = string(p.Pull.Revision)
	}
	r.pulled(p.Pull, out)
	r.committed(p.Commit, out)
	if p.Pushed {
		out.Pushed++
		out.Revision = string(p.Revision)
	}
}

// eventConflict is not an event of AIP-37; a host may listen for it.
const eventConflict = "storage:conflict"

// maxConflictEvents bounds the conflict events of one commit or pull.
const maxConflictEvents = 100

// conflicts adds the conflicts that a commit or pull found, also to the audit.
func (r *reporter) conflicts(paths []string, out *control.EventResult) {
	emitted := 0
	for _, path := range paths {
		if !out.Conflict(r.name+"/"+path) || emitted == maxConflictEvents {
			continue
		}
		emitted++
		r.emit(eventConflict, map[string]string{"path": path})
		r.write(audit.Conflict{Workspace: r.name, Path: path, Policy: string(r.conflict), Outcome: "found"})
	}
}

// unreported adds the conflicts that closes found since the last event, and that
// neither a commit nor a pull of this event has reported.
func (r *reporter) unreported(ctx context.Context, out *control.EventResult) {
	_ = r.copy.use(ctx, func(context.Context) error { // closed, it has reported them already
		r.conflicts(r.copy.UnreportedConflicts(), out)
		return nil
	})
}

// unresolved adds the conflicts that wait for a user: their files are not pushed.
func (r *reporter) unresolved(ctx context.Context, out *control.EventResult) {
	_ = r.copy.use(ctx, func(context.Context) error { // closed, it has reported them already
		all := r.copy.Conflicts()
		for _, c := range all {
			out.Conflict(r.name + "/" + c.Path)
		}
		out.HeldBack = max(out.HeldBack, len(all))
		return nil
	})
}

// write adds a record of a past event to the audit.
func (r *reporter) write(record audit.Record) {
	if err := r.audit.Write(record); err != nil {
		r.log.Error("the audit log cannot be written", "err", err)
	}
}

// emit puts an event of the storage on the bus. It never causes a commit.
func (r *reporter) emit(name mountspec.Trigger, payload map[string]string) {
	payload["storageId"] = r.name
	r.bus.Emit(lifecycle.Event{Name: string(name), Payload: payload,
		Source: lifecycle.Source{Kind: lifecycle.SourceStorage, ID: r.name}})
}

// beginCommit and endCommit bracket a commit of the syncer's own. A store that takes no
// change sets does not call commitTaken: endCommit reports instead.
func (r *reporter) beginCommit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commit = true
}

func (r *reporter) endCommit(c cache.CommitReport) {
	r.mu.Lock()
	unreported := r.commit
	r.commit = false
	r.mu.Unlock()
	if c.Committed && unreported {
		r.emit(mountspec.EventCommitCompleted, map[string]string{"ref": string(c.Revision)})
	}
}

// commitTaken is called with each commit that a store of revisions has taken, also with
// commits that the working copy makes by itself.
func (r *reporter) commitTaken(revision providers.Revision) {
	r.mu.Lock()
	r.commit = false
	r.mu.Unlock()
	r.emit(mountspec.EventCommitCompleted, map[string]string{"ref": string(revision)})
}

// A heldPush keeps the result of a push until it is reported with its pull request.
type heldPush struct {
	mu     sync.Mutex
	result providers.PushResult
}

func (h *heldPush) take(r providers.PushResult) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result = r
}

func (h *heldPush) taken() providers.PushResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.result
}

// hold keeps the result of a push by the syncer, so that pushTo reports it with its pull request.
func (r *reporter) hold() *heldPush {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = &heldPush{}
	return r.held
}

// release ends hold: from now on each push is reported at once.
func (r *reporter) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = nil
}

// pushTaken is called with each push that the remote has taken.
func (r *reporter) pushTaken(p providers.PushResult) {
	r.mu.Lock()
	held := r.held
	r.mu.Unlock()
	if held != nil {
		held.take(p)
		return
	}
	r.pushCompleted(p)
}

func (r *reporter) pushCompleted(p providers.PushResult) {
	payload := map[string]string{"ref": string(p.Revision)}
	if p.URL != "" {
		payload["prUrl"] = p.URL
	}
	r.emit(mountspec.EventPushCompleted, payload)
}
