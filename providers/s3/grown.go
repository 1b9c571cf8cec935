package s3

import (
	"sync"
	"time"
)

// grown has goroutines whose stacks have grown. The SDK sends a request from some sixty calls
// down in its middleware, with large frames: a new goroutine copies its stack several times on
// the way there, which took a seventh of all processor time where many small objects were read.
// So requests run on goroutines whose stacks are large already, and which then wait for the
// next.
type grown struct {
	jobs chan func()
	end  chan struct{} // closed when waiting goroutines are to end
	once sync.Once     // closes end
}

// grownFor is how long a goroutine waits for the next request.
const grownFor = 10 * time.Second

func newGrown() *grown { return &grown{jobs: make(chan func()), end: make(chan struct{})} }

// run runs f on one of them, and returns after f.
func (g *grown) run(f func()) {
	done := make(chan struct{})
	job := func() {
		defer close(done)
		f()
	}
	select {
	case g.jobs <- job:
	default:
		go g.serve(job)
	}
	<-done
}

// close lets waiting goroutines end.
func (g *grown) close() { g.once.Do(func() { close(g.end) }) }

func (g *grown) serve(job func()) {
	idle := time.NewTimer(grownFor)
	defer idle.Stop()
	for {
		job()
		idle.Reset(grownFor)
		select {
		case job = <-g.jobs:
		case <-idle.C:
			return
		case <-g.end:
			return
		}
	}
}
