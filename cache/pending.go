package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// newPending makes the queue of the changes that the remote does not have yet.
func newPending(v *Volume) *pending.Queue {
	p := &v.o.Policy
	return pending.New(pending.Options{
		Now: v.o.Now, After: sending{v}.after,
		OnChange: p.Commit == DueChange, Held: func(*tree.View) bool { return p.Held != nil && p.Held() }, Window: p.Window, MaxUnsaved: p.MaxUnsaved, MaxOpen: p.MaxOpen,
		Writers: writers{v}, Sender: sending{v},
	})
}

// writers are the open files of a volume, as pending.Writers.
type writers struct{ v *Volume }

func (w writers) Writing(at *tree.View, ino table.Ino) (isOpen, touched bool) {
	open := w.v.open
	if !open.IsWritten(at, ino) {
		return false, false
	}
	return true, open.Of(at, ino).IsTouched()
}

func (w writers) All(at *tree.View, visit func(ino table.Ino)) {
	open := w.v.open
	for _, ino := range open.Inos(at) {
		if open.IsWritten(at, ino) {
			visit(ino)
		}
	}
}

// sending adapts the sender of a volume, as pending.Sender.
type sending struct{ v *Volume }

func (s sending) Failure(at *tree.View, l table.Link) (error, bool) { return s.v.holds.Failure(at, l) }

func (s sending) IsSending(at *tree.View, l table.Link) bool {
	return s.v.send.Jobs().Busy(at, l) != nil
}

func (s sending) IsPlaceKnown(at *tree.View, ino table.Ino) bool {
	return s.v.send.IsPlaceKnown(at, ino)
}

func (s sending) IsAsked(at *tree.View) bool { return s.v.committer.IsAsked(at) }

func (s sending) IsStopped(at *tree.View) bool {
	locked := s.v.held.Of(at)
	return s.v.send.Backoff().Failures(at) > 0 || locked.deletions.err != nil || locked.closed
}

// after implements pending.Options.After, in the background.
func (s sending) after(at *tree.View, d time.Duration, f func(*tree.View)) {
	v := s.v
	if v.held.Of(at).closed {
		return
	}
	v.work.Go(func() {
		_ = v.pause(v.ctx, d)
		locked := v.lock()
		defer locked.unlock()
		f(locked.View)
	})
}
