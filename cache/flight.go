package cache

import (
	"github.com/wsmount/wsmount/fs"
)

// flight is work for an inode that several requests wait for: a listing or a
// fetch. It goes on as long as one of them does.
type flight struct {
	done    chan struct{}
	err     error // valid when done is closed
	waiting *waiting
	askers  int // guarded by Volume.mu
}

// share runs work for an inode, or waits for the run that is under way. The
// run ends when it stands still for half of the patience.
func (v *Volume) share(op *fs.Op, ino fs.Ino, work func(*waiting) error) error {
	v.mu.Lock()
	f := v.flights[ino]
	if f == nil {
		f = &flight{done: make(chan struct{}), waiting: v.wait(nil, v.o.Patience/2)}
		v.flights[ino] = f
		go v.fly(ino, f, work)
	}
	f.askers++
	v.mu.Unlock()

	mine := v.wait(op, 0)
	defer mine.close()
	var err error
	select {
	case <-f.done:
		err = f.err
	case <-mine.Done():
		err = mine.cause(mine.Err())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if f.askers--; f.askers == 0 {
		f.waiting.close()
		v.land(ino, f) // nobody may join what is being given up
	}
	return translate(err)
}

// land takes a flight off the list. v.mu is held.
func (v *Volume) land(ino fs.Ino, f *flight) {
	if v.flights[ino] == f {
		delete(v.flights, ino)
	}
}

func (v *Volume) fly(ino fs.Ino, f *flight, work func(*waiting) error) {
	err := f.waiting.cause(work(f.waiting))
	v.mu.Lock()
	v.land(ino, f)
	v.mu.Unlock()
	f.err = err
	close(f.done)
}
