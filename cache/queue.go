package cache

import (
	"context"
	"sync"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// verb says what a job does at the backend.
type verb uint8

const (
	verbSend     verb = iota // the content of an inode, to all its names of then
	verbMkdir                // a directory
	verbDelete               // a file or link
	verbRmdir                // an empty directory
	verbRename               // anything
	verbExchange             // two of anything
	verbLink                 // a further name for content
	verbAttr                 // mode, owner, mtime
)

var verbNames = [...]string{"send", "mkdir", "unlink", "rmdir", "rename", "exchange", "link", "setattr"}

func (v verb) String() string { return verbNames[v] }

// job is a change on its way to the backend: plain data, with the names as
// they were when it was made. Jobs run in order, so those names are right by
// the time that it runs.
type job struct {
	seq   uint64
	verb  verb
	ino   fs.Ino
	other fs.Ino              // the second inode of an exchange
	paths []providers.Locator // what it touches; a rename's and a link's begin with from, to
	named uint32              // of the inode, by then

	sendable bool                   // a rename: the inode is one that the backend can have
	moves    [][2]providers.Locator // an exchange: what is still to be moved; nil: not decided
	cleared  bool                   // a rename: the directory that was in its way is gone
	unsure   bool                   // an attempt may have happened without our hearing of it
}

// transfer is content or a listing on its way, between two jobs.
type transfer struct {
	q     *queue
	paths []providers.Locator
	list  bool   // of a directory: only its own and its children's names matter
	named uint32 // of the inode, by then
}

// queue orders what goes to the backend. Jobs run one by one, in the order in
// which they were made; transfers run beside them and beside each other,
// except that a transfer and whatever else touches the same names wait for one
// another. Volume.mu may be held over its methods, except those that wait.
type queue struct {
	mu        sync.Mutex // guards all below; comes after Volume.mu
	jobs      []*job     // not done yet
	last      uint64     // the number that was given last
	transfers map[*transfer]struct{}
	changed   chan struct{} // closed and replaced when anything above changes
}

func newQueue() *queue {
	return &queue{transfers: map[*transfer]struct{}{}, changed: make(chan struct{})}
}

// wake tells all who wait. q.mu is held.
func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// add puts a job at the end.
func (q *queue) add(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	j.seq = q.last
	q.jobs = append(q.jobs, j)
	q.wake()
}

// next waits for a job that nothing keeps from running. It stays in the queue
// until finish. nil when ctx has ended.
func (q *queue) next(ctx context.Context) *job {
	for {
		q.mu.Lock()
		wait := q.changed
		if len(q.jobs) > 0 && !q.busy(q.jobs[0]) {
			j := q.jobs[0]
			q.mu.Unlock()
			return j
		}
		q.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil
		}
	}
}

// busy reports whether a transfer touches the names of a job.
func (q *queue) busy(j *job) bool {
	for t := range q.transfers {
		if t.touches(j.paths) {
			return true
		}
	}
	return false
}

// finish removes a job that next gave.
func (q *queue) finish(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	q.wake()
}

// done reports whether all jobs up to a number are done. q.mu is held.
func (q *queue) done(seq uint64) bool { return len(q.jobs) == 0 || q.jobs[0].seq > seq }

// mark is the number of the last job so far.
func (q *queue) mark() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

// wait returns when all jobs up to a number are done.
func (q *queue) wait(ctx context.Context, seq uint64) error {
	for {
		q.mu.Lock()
		done, changed := q.done(seq), q.changed
		q.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try begins a transfer when the jobs up to after are done and nothing touches
// its names; else it gives a channel to wait for before the next try.
func (q *queue) try(t *transfer, after uint64) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.done(after) {
		return q.changed
	}
	for _, j := range q.jobs {
		if t.touches(j.paths) {
			return q.changed
		}
	}
	for other := range q.transfers {
		if !(t.list && other.list) && (t.touches(other.paths) && other.touches(t.paths)) {
			return q.changed
		}
	}
	t.q = q
	q.transfers[t] = struct{}{}
	return nil
}

// end lets others go on.
func (t *transfer) end() {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	delete(t.q.transfers, t)
	t.q.wake()
}

// touches reports whether one of paths is, contains, or lies below a name of
// the transfer.
func (t *transfer) touches(paths []providers.Locator) bool {
	for _, mine := range t.paths {
		for _, p := range paths {
			switch {
			case p.Contains(mine):
				return true
			case t.list && p.Parent() == mine, !t.list && mine.Contains(p):
				return true
			}
		}
	}
	return false
}

// length is how many jobs are not done.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs)
}

// first is the number of the oldest job that is not done, 0 for none.
func (q *queue) first() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		return 0
	}
	return q.jobs[0].seq
}
