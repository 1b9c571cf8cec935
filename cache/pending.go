package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// newPending is what the remote does not have yet of a volume.
func newPending(v *Volume) *pending.Queue {
	p := &v.o.Policy
	return pending.New(pending.Options{
		Now: v.o.Now, After: sending{v}.after,
		OnChange: p.Commit == DueChange, Held: p.Held, Window: p.Window, MaxUnsaved: p.MaxUnsaved, MaxOpen: p.MaxOpen,
		Writers: writers{v}, Sender: sending{v},
	})
}

// writers are the open files of a volume, as pending.Writers.
type writers struct{ v *Volume }

func (w writers) Writing(ino table.Ino) (open, touched bool) {
	v := w.v.held
	if !v.open.IsWritten(v.View, ino) {
		return false, false
	}
	return true, v.open.Of(v.View, ino).IsTouched()
}

func (w writers) All(visit func(ino table.Ino)) {
	v := w.v.held
	for _, ino := range v.open.Inos(v.View) {
		if v.open.IsWritten(v.View, ino) {
			visit(ino)
		}
	}
}

// sending is what sends for a volume, as pending.Sender.
type sending struct{ v *Volume }

func (s sending) Failure(l table.Link) (error, bool) { return s.v.holds.Failure(s.v.held.View, l) }

func (s sending) IsSending(l table.Link) bool { return s.v.send.Jobs().Busy(l) != nil }

func (s sending) IsPlaceKnown(ino table.Ino) bool {
	return s.v.send.IsPlaceKnown(s.v.held.View, ino)
}

func (s sending) IsAsked() bool { return s.v.committer.IsAsked() }

func (s sending) IsStopped() bool {
	return s.v.send.Backoff().Failures() > 0 || s.v.deletions.err != nil || s.v.held.closed
}

// after implements pending.Options.After: f runs under the lock, in the background.
func (s sending) after(d time.Duration, f func()) {
	v := s.v
	if v.held.closed {
		return
	}
	v.background(func() {
		_ = v.pause(v.ctx, d)
		locked := v.lock()
		defer locked.unlock()
		f()
	})
}
