package cache

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// sharedListing is a listing of a directory that several wait for. It goes on as long
// as one of them does, or when one of them went away to leave it to itself.
type sharedListing struct {
	done    chan struct{}
	err     error // valid when done is closed
	waiting *waiting
	began   time.Time
	askers  int  // guarded by the volume's lock
	kept    bool // nobody need wait; guarded by the volume's lock
}

// errTimedOut says that somebody did not want to wait any longer; the listing goes
// on.
var errTimedOut = errors.New("listing timed out")

// startListing runs work for a directory, or waits for the run that is under way, for
// limit at most; less than 0: to its end. The run ends when it stands still for
// half of the patience. It reports when the run began.
func (v *Volume) startListing(op *fs.Op, dir table.Ino, limit time.Duration, work func(*waiting) error) (time.Time, error) {
	locked := v.lock()
	f := locked.pulls.shared[dir]
	if f == nil {
		f = &sharedListing{done: make(chan struct{}), waiting: v.wait(nil, v.o.Patience/2), began: v.o.Now()}
		locked.pulls.shared[dir] = f
		v.work.Add(1)
		go v.runListing(dir, f, work)
	}
	f.askers++
	f.kept = f.kept || limit == 0
	locked.unlock()

	err := v.joinListing(op, f, limit)
	locked = v.lock()
	defer locked.unlock()
	f.kept = f.kept || err == errTimedOut // never wrapped
	if f.askers--; f.askers == 0 && !f.kept {
		f.waiting.close()
		locked.finishListing(dir, f) // nobody may join what is being given up
	}
	return f.began, translate(err)
}

// joinListing waits for the end of a shared listing, or of the patience with it.
func (v *Volume) joinListing(op *fs.Op, f *sharedListing, limit time.Duration) error {
	mine := v.wait(op, 0)
	defer mine.close()
	var late <-chan time.Time
	for {
		pages := f.waiting.pages.Load()
		if limit >= 0 {
			late = time.After(v.lookFor(limit))
		}
		select {
		case <-f.done:
			return f.err
		case <-late:
			if f.waiting.pages.Load() == pages { // else the backend does answer
				return errTimedOut
			}
		case <-mine.Done():
			return mine.cause(mine.Err())
		}
	}
}

// lookFor is how long a look really waits that is to wait so long.
func (v *Volume) lookFor(d time.Duration) time.Duration {
	if v.o.looks != nil {
		return v.o.looks(d)
	}
	return d
}

// finishListing takes a shared listing off the list.
func (v *View) finishListing(dir table.Ino, f *sharedListing) {
	if v.pulls.shared[dir] == f {
		delete(v.pulls.shared, dir)
	}
}

func (v *Volume) runListing(dir table.Ino, f *sharedListing, work func(*waiting) error) {
	defer v.work.Done()
	err := f.waiting.cause(work(f.waiting))
	locked := v.lock()
	locked.finishListing(dir, f)
	locked.unlock()
	f.err = err
	close(f.done)
	f.waiting.close()
}
