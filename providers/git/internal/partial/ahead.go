package partial

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers/git/internal/history"
	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// ahead prefetches the blobs of a partial clone: those below directories that a program has
// looked at, the rest of the head, from the root down, and then those of the history alone. It is
// for one goroutine.
type ahead struct {
	w     *Blobs
	again atomic.Bool // trees have come since the walk began

	seen  map[id]bool // trees that were looked through
	near  []id
	far   []id
	past  []id // commits
	found int  // blobs that were missing, since the walk began
	begun bool
	cut   bool // the history is longer than is walked over

	each  int // blobs in the next batch
	pause time.Duration
}

// Bounds of the prefetch.
const (
	batchFirst  = 2000     // blobs, when nothing is known of their size
	batchBytes  = 32 << 20 // wanted in a batch
	batchLeast  = 32
	batchMost   = 25_000
	mostAhead   = 4 << 30 // bytes of packs, above which blobs come only on demand
	mostTrees   = 1 << 20 // that are looked through
	mostHistory = 100_000 // commits
	mostSpare   = 1 << 30 // bytes of the disk that stay free, or a twentieth of a small one
	pauseFirst  = time.Second
	pauseMost   = time.Minute
	smallClone  = 1000 // blobs of a head that come before the clone is ready
)

func newAhead(w *Blobs) *ahead { return &ahead{w: w, each: batchFirst} }

// run goes on until the provider is closed.
func (a *ahead) run() {
	for a.w.ctx.Err() == nil {
		wait, err := forever, error(nil)
		if a.w.is.Load() {
			wait, err = a.step()
		}
		if err != nil {
			a.w.mu.Lock()
			locked{a.w}.failed(err)
			a.w.mu.Unlock()
			wait = a.backOff()
		}
		if wait == 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-a.w.woken:
		case <-a.w.ctx.Done():
		}
		timer.Stop()
	}
}

func (a *ahead) backOff() time.Duration {
	a.pause = min(max(2*a.pause, pauseFirst), pauseMost)
	return a.pause
}

const forever = time.Duration(math.MaxInt64)

// step brings a batch. wait is the time until the next step.
func (a *ahead) step() (wait time.Duration, err error) {
	if a.again.Swap(false) || !a.begun {
		if err := a.start(); err != nil {
			return 0, err
		}
	}
	why := a.tooMuch()
	if a.say(why); why != "" {
		return pauseMost, nil // there may be room by then
	}
	if a.w.from.OnDemand {
		return forever, nil
	}
	end := a.w.from.Turn(a.w.ctx)
	wait, news, err := a.batch()
	end(news)
	return wait, err
}

// batch is step when it is this clone's turn. news says that there is more to lend.
func (a *ahead) batch() (wait time.Duration, news bool, err error) {
	blobs, end, err := a.more(a.each)
	if err != nil {
		return 0, false, err
	}
	a.found += len(blobs)
	if r := a.w.reserve(blobs); r != nil {
		size := a.w.send(r)
		if r.err != nil {
			a.begun = false // missing blobs are looked for again
			return 0, false, r.err
		}
		a.pause = 0
		a.each = int(min(max(batchBytes*int64(len(r.blobs))/max(size, 1), batchLeast), batchMost))
		return 0, true, nil
	}
	if !end {
		return 0, false, nil
	}
	a.begun = false
	switch {
	case a.found == 0 && a.cut:
		a.say("the history is very long, and what only it has comes when it is needed")
		return forever, false, nil
	case a.found == 0:
		return forever, true, a.w.complete()
	}
	return 0, false, a.settled() // look again, when nothing is on its way
}

// settled waits for the requests of others.
func (a *ahead) settled() error {
	a.w.mu.Lock()
	var r *request
	for _, r = range a.w.requests {
		break
	}
	a.w.mu.Unlock()
	if r != nil {
		<-r.done
		return r.err
	}
	return nil
}

// start begins a walk over the head and its history.
func (a *ahead) start() error {
	a.seen, a.near, a.far, a.past, a.found, a.begun, a.cut = map[id]bool{}, nil, nil, nil, 0, true, false
	heads, err := a.w.in.Heads()
	if err != nil {
		return err
	}
	for _, c := range heads {
		commit, err := a.w.in.Commit(c)
		if err != nil {
			return err
		}
		a.far = append(a.far, commit.Tree)
	}
	missing, err := missingIn(a.w.in.Objects, a.far, 0)
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.state.Missing = len(missing)
	if err == nil {
		a.past, err = history.Recent(a.w.in.Commit, mostHistory, heads...)
		a.cut = len(a.past) == mostHistory
	}
	return err
}

// more finds up to n missing blobs. end reports that the walk is over.
func (a *ahead) more(n int) (blobs []id, end bool, err error) {
	for len(blobs) < n {
		tree, queue, err := a.next()
		if err != nil || queue == nil {
			return blobs, true, err
		}
		if a.seen[tree] {
			continue
		}
		if a.cut = a.cut || len(a.seen) >= mostTrees; len(a.seen) >= mostTrees {
			return blobs, true, nil
		}
		a.seen[tree] = true
		if blobs, err = a.look(tree, queue, blobs); err != nil {
			return nil, false, err
		}
	}
	return blobs, false, nil
}

// next is the next tree to look through, and the queue for trees below it; nil: there is none.
func (a *ahead) next() (tree id, queue *[]id, err error) {
	a.w.mu.Lock()
	a.near, a.w.near = append(a.w.near, a.near...), nil
	a.w.mu.Unlock()
	for _, queue := range []*[]id{&a.near, &a.far} {
		if len(*queue) > 0 {
			tree, *queue = (*queue)[0], (*queue)[1:]
			return tree, queue, nil
		}
	}
	if len(a.past) == 0 {
		return tree, nil, nil
	}
	commit, err := a.w.in.Commit(a.past[0])
	a.past = a.past[1:]
	return commit.Tree, &a.far, err
}

// look finds the missing blobs of a directory, and has those below it wait.
func (a *ahead) look(tree id, queue *[]id, blobs []id) ([]id, error) {
	err := eachOf(a.w.in.Objects, tree, func(e object.Entry) {
		switch {
		case e.Mode.IsDir():
			*queue = append(*queue, e.ID)
		case !a.w.in.Objects.Has(e.ID):
			blobs = append(blobs, e.ID)
		}
	})
	return blobs, err
}

// tooMuch is the reason why no more blobs may be prefetched; "": they may.
func (a *ahead) tooMuch() string {
	if size := a.w.in.Objects.Bytes(); size > mostAhead && a.w.from.Bounded {
		return fmt.Sprintf("%d MiB are here, and the rest comes when it is needed", size>>20)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(a.w.in.Dir, &st); err != nil {
		return ""
	}
	if free, all := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize; free < min(all/20, mostSpare) {
		return "the disk is nearly full, and the rest comes when it is needed"
	}
	return ""
}

// say records the reason why the prefetch pauses.
func (a *ahead) say(why string) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.state.Paused = why
}
