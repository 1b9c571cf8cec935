package cache

import (
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
)

// Progress is how far something is that may take long where there are very many
// names. No one but who asked for it waits for that.
type Progress struct {
	What  string // "collecting", "recording", "sending", "noting" or "taking back"; "": no commit of a set is under way
	Done  int    // names
	Total int    // of so many
	// Beat changes whenever a commit, a pull or a push has come further.
	Beat uint64
}

// doing is what is under way.
type doing struct {
	beat atomic.Uint64
	last atomic.Int64                    // when it was last told that bytes move
	now  atomic.Pointer[Progress]        // of a set; nil: nothing
	wait atomic.Pointer[waiting.Context] // of who does it, who gives up when nothing moves
	told func(Progress)                  // nil: by no one
}

// goesOn tells how far a set is, now and then and at its end: it has not come to a
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

// isNews reports whether that bytes move was not told for so long.
func (d *doing) isNews(after time.Duration) bool {
	now, last := time.Now().UnixNano(), d.last.Load()
	return now-last >= int64(after) && d.last.CompareAndSwap(last, now)
}

// alive has who sends a set not give up yet.
func (d *doing) alive() {
	if w := d.wait.Load(); w != nil {
		w.Moved()
	}
}

// beating has the beat change with what waits.
func (d *doing) beating(w *waiting.Context) *waiting.Context {
	return w.Beating(&d.beat)
}

// advanced tells everybody who waits that the remote got something, or more of it.
func (d *doing) advanced(at *tree.View, q *pending.Queue) {
	d.beat.Add(1)
	q.Advance(at)
}

// Progress tells what a commit that is under way does. It never waits.
func (v *Volume) Progress() (p Progress) {
	if now := v.doing.now.Load(); now != nil {
		p = *now
	}
	p.Beat = v.doing.beat.Load()
	return p
}
