package cache

import (
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
)

// Progress tells how far a commit of a set is, which may take long if there are very many names.
// Only the caller of the commit waits for it.
type Progress struct {
	What  string // "collecting", "recording", "sending", "noting" or "taking back"; "": no commit of a set is under way
	Done  int    // names
	Total int    // of so many
	// Beat changes whenever a commit, a pull or a push makes progress.
	Beat uint64
}

// doing is the work that is under way.
type doing struct {
	beat atomic.Uint64
	last atomic.Int64                    // when moving bytes were last reported
	now  atomic.Pointer[Progress]        // of a set; nil: nothing
	wait atomic.Pointer[waiting.Context] // of the sender, which gives up when nothing moves
	told func(Progress)                  // nil: unused
}

// goesOn reports the progress of a set, now and then and at its end: the set has not come to a
// halt. It needs no lock.
func (d *doing) goesOn(what string, done, total int) {
	if done%commit.PieceSize != 0 && done != total {
		return
	}
	p := Progress{What: what, Done: done, Total: total}
	d.now.Store(&p)
	d.alive()
	if d.told != nil {
		d.told(p)
	}
}

// isNews reports whether moving bytes were not reported for the time after.
func (d *doing) isNews(after time.Duration) bool {
	now, last := time.Now().UnixNano(), d.last.Load()
	return now-last >= int64(after) && d.last.CompareAndSwap(last, now)
}

// alive keeps the sender of a set from giving up for now.
func (d *doing) alive() {
	if w := d.wait.Load(); w != nil {
		w.Moved()
	}
}

// beating makes the beat change with the progress of w.
func (d *doing) beating(w *waiting.Context) *waiting.Context {
	return w.Beating(&d.beat)
}

// advanced tells all waiters that the remote got something, or more of it.
func (d *doing) advanced(at *tree.View, q *pending.Queue) {
	d.beat.Add(1)
	q.Advance(at)
}

// Progress tells the state of a commit that is under way. It never waits.
func (v *Volume) Progress() (p Progress) {
	if now := v.doing.now.Load(); now != nil {
		p = *now
	}
	p.Beat = v.doing.beat.Load()
	return p
}
