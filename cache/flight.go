package cache

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// flight is a listing of a directory that several wait for. It goes on as long
// as one of them does, or when one of them went away to leave it to itself.
type flight struct {
	done    chan struct{}
	err     error // valid when done is closed
	waiting *waiting
	began   time.Time
	askers  int  // guarded by Volume.mu
	kept    bool // nobody need wait; guarded by Volume.mu
}

// errLate says that somebody did not want to wait any longer; the flight goes
// on.
var errLate = errors.New("it takes long")

// share runs work for a directory, or waits for the run that is under way, for
// limit at most; less than 0: to its end. The run ends when it stands still for
// half of the patience. It reports when the run began.
func (v *Volume) share(op *fs.Op, dir table.Ino, limit time.Duration, work func(*waiting) error) (time.Time, error) {
	v.mu.Lock()
	f := v.puller.flights[dir]
	if f == nil {
		f = &flight{done: make(chan struct{}), waiting: v.wait(nil, v.o.Patience/2), began: v.o.Now()}
		v.puller.flights[dir] = f
		v.work.Add(1)
		go v.fly(dir, f, work)
	}
	f.askers++
	f.kept = f.kept || limit == 0
	v.mu.Unlock()

	err := v.ride(op, f, limit)
	v.mu.Lock()
	defer v.mu.Unlock()
	f.kept = f.kept || err == errLate // never wrapped
	if f.askers--; f.askers == 0 && !f.kept {
		f.waiting.close()
		v.land(dir, f) // nobody may join what is being given up
	}
	return f.began, translate(err)
}

// ride waits for the end of a flight, or of the patience with it.
func (v *Volume) ride(op *fs.Op, f *flight, limit time.Duration) error {
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
				return errLate
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

// land takes a flight off the list. mu is held.
func (v *Volume) land(dir table.Ino, f *flight) {
	if v.puller.flights[dir] == f {
		delete(v.puller.flights, dir)
	}
}

func (v *Volume) fly(dir table.Ino, f *flight, work func(*waiting) error) {
	defer v.work.Done()
	err := f.waiting.cause(work(f.waiting))
	v.mu.Lock()
	v.land(dir, f)
	v.mu.Unlock()
	f.err = err
	close(f.done)
	f.waiting.close()
}
