package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/providers"
)

// housekeeping is how often a volume does the work that no change triggers.
const housekeeping = 15 * time.Second

// makeUploads makes the parts that send for a volume, name by name until there are sets.
func makeUploads(v *Volume) {
	v.exec = upload.NewExecutor(upload.ExecutorOptions{
		Provider: v.p, Name: v.o.Provider, Tree: v.tree,
		Volume: uploading{v}, Names: uploading{v}, Content: uploading{v}, Attributes: v.attrs(),
		NewID: v.ids.Next, Passes: waiting.Passes, PartSize: v.o.part, Log: v.o.Log,
	})
	v.send = upload.NewSender(upload.SenderOptions{
		Tree: v.tree, Queue: v.pending, Executor: v.exec,
		Host: uploading{v}, Judge: uploading{v}, Monitor: uploading{v},
		Context: v.ctx, Now: v.o.Now, NoWait: v.o.Policy.NoWait, Log: v.o.Log,
	})
	v.holds = upload.NewHolds(upload.HoldsOptions{
		Tree: v.tree, Queue: v.pending, Jobs: v.send.Jobs(), Volume: uploading{v}, Now: v.o.Now,
		Stopped: func(at *tree.View) (cause error, final bool) {
			if cause = v.held.Of(at).deletions.err; cause != nil {
				return cause, true
			}
			return v.committer.Stopped(at)
		},
	})
	v.sent = waiting.NewSent(waiting.SentOptions{Waits: v.waits, Tree: v.tree, Queue: v.pending, Sender: v.send,
		ReadOnly: v.o.ReadOnly, NoWait: v.o.Policy.NoWait, Patience: v.o.Patience, Failure: func() string { return v.Status().LastError }})
	v.committer = upload.NewCommitter(upload.CommitterOptions{
		Tree: v.tree, Queue: v.pending, Sender: v.send, Holds: v.holds, Guard: uploading{v},
		Wait: uploading{v}.wait,
	})
	v.loop = &upload.Loop{
		Tree: v.tree, Queue: v.pending, Jobs: v.send.Jobs(),
		Look: func(at *tree.View) { v.committer.Look(at) }, Recheck: func(at *tree.View) { v.held.Of(at).deletions.recheck() }, Flush: v.opener.FlushIfOpen,
		OnChange: v.o.Policy.Commit == DueChange, Every: min(v.o.Policy.MaxOpen/4, housekeeping), Now: v.o.Now, Log: v.o.Log,
	}
}

// resumeUploads resumes uploads of the last run, and has sets sent where they are wanted.
func (v *Volume) resumeUploads() {
	locked := v.lock()
	defer locked.unlock()
	open := commit.IsUnresolved(locked.View) // policy was another when the set was begun
	if open || v.o.Policy.Atomic || v.caps.Abilities.Has(providers.AbilitySync) {
		if remote, can := providers.As[providers.Committer](v.p); can {
			v.sets = newSetCommitter(v, remote)
			v.committer = v.sets
			v.border.Ignoring = v.o.IgnoreFile != ""
		}
	}
	v.pending.Resume(locked.View, func(l table.Link, rec table.Name) {
		if rec.Attempt != nil && rec.Attempt.Kind != upload.AttemptSet && v.sets != nil {
			v.sets.TakeUp(locked.View, l)
		}
		if rec.Held != nil {
			v.holds.Resume(locked.View, l, rec.Held)
		}
	})
}

// Rouse retries failed names now: their cause is over, such as a policy's refusal.
func (v *Volume) Rouse() {
	defer v.pending.Kick()
	locked := v.lock()
	defer locked.unlock()
	v.send.Rouse(locked.View)
}

// partsLeft is the age from which an upload is taken as abandoned: its program was killed, or lost
// its network for good.
const partsLeft = 24 * time.Hour

// freeParts frees, after a while and then once a day, the parts of uploads that were never
// completed.
func (v *Volume) freeParts(parter providers.Multiparter, wait time.Duration) {
	if waiting.Sleep(v.ctx, wait) != nil {
		return
	}
	for {
		w := v.waits.For(nil, v.o.Patience)
		n, err := parter.AbortParts(w, v.o.Now().Add(-partsLeft))
		w.Close()
		v.chores.Ended(chores.Parts, err)
		if n > 0 {
			v.o.Log.Info("uploads that were never completed are freed", "count", n)
		}
		if waiting.Sleep(v.ctx, partsLeft) != nil {
			return
		}
	}
}
