package daemon

import (
	"sync"
	"time"
)

// freshness is how old what was pulled is, and whether a pull is owed.
type freshness struct {
	mu   sync.Mutex // guards what follows
	owed string     // why a pull was put off, or empty
	last time.Time  // the last pull
	used uint64     // operations of the kernel at that time
}

// owe notes why a pull is put off.
func (f *freshness) owe(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed = reason
}

// putOff says why a pull is owed, "" if none is.
func (f *freshness) putOff() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owed
}

// pulled notes that the remote was asked, and why nothing was brought, if so.
func (f *freshness) pulled(now time.Time, putOff string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed, f.last = putOff, now
}

// begin notes that the remote is asked because its time has come, whatever becomes of
// it: it is not asked again at once. operations counts the requests of the kernel.
func (f *freshness) begin(now time.Time, operations uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.used = now, operations
}

// age is how long ago the last pull was, and whether programs have used the tree since.
func (f *freshness) age(now time.Time, operations uint64) (age time.Duration, used bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Sub(f.last), operations != f.used
}
