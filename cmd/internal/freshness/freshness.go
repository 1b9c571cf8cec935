// Package freshness says how long the last pull counts as the state of the remote, and has
// the first look after that wait for a pull. The model is NFS: the state that a program sees
// when it looks up a name or opens a file was requested within the TTL, and a file that is
// open is read and written without asking.
//
//	f := freshness.New(ttl, time.Now)
//	f.Arm(func() { f.Answered(time.Now()) }) // after a pull
//	err := f.Wait(ctx)                       // before a look
package freshness

import (
	"context"
	"sync"
	"time"
)

// Recheck is how long the known state is shown, where a pull is due and not possible,
// until the next check whether it is.
const Recheck = time.Second

// Freshness is the age of the last pull, and whether a pull is owed.
type Freshness struct {
	ttl time.Duration
	now func() time.Time

	mu    sync.Mutex    // guards the fields below
	owed  string        // why a pull was put off, or empty
	last  time.Time     // when the remote was asked for the local state
	held  time.Time     // until when it is shown, however old it is
	used  uint64        // operations of the kernel when the last periodic pull began
	stale error         // why the last pull did not bring the remote's state; nil: it did
	renew func()        // nil: looks do not wait
	run   chan struct{} // closed when the renewal under way has ended; nil: there is none
}

// New is a Freshness for a remote that was never asked.
func New(ttl time.Duration, now func() time.Time) *Freshness { return &Freshness{ttl: ttl, now: now} }

// Owe notes that a pull is put off, and why.
func (f *Freshness) Owe(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed, f.held = reason, time.Time{}
}

// PutOff says why a pull is owed, "" if none is.
func (f *Freshness) PutOff() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owed
}

// Skipped notes that a pull that began at a time did not ask the remote, and why. It is
// owed, and not tried again at once.
func (f *Freshness) Skipped(began time.Time, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed, f.last = reason, began
}

// Answered notes that the remote was asked at a time and that its state is local now. Again
// says that it could not be asked before.
func (f *Freshness) Answered(began time.Time) (again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	again = f.stale != nil
	f.owed, f.last, f.stale = "", began, nil
	return again
}

// Failed notes why the remote cannot be asked: the known state is shown until it has
// answered, also to callers that wait by now. News says that it could be asked before.
func (f *Freshness) Failed(err error) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news = f.stale == nil
	f.stale = err
	f.endRun()
	return news
}

// endRun lets the callers go that wait for the renewal under way. mu guards it.
func (f *Freshness) endRun() {
	if f.run != nil {
		close(f.run)
		f.run = nil
	}
}

// Stale is why the state that is shown may be older than the TTL, nil if it is not.
func (f *Freshness) Stale() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stale
}

// Begin notes how many requests the kernel has sent when a pull begins because its time
// has come.
func (f *Freshness) Begin(operations uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = operations
}

// Age is how long ago the remote was asked, and whether programs have used the tree since
// the last periodic pull began.
func (f *Freshness) Age(operations uint64) (age time.Duration, used bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now().Sub(f.last), operations != f.used
}

// Hold has the known state shown for a moment, since it cannot be renewed now.
func (f *Freshness) Hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = f.now().Add(Recheck)
}

// Look ends what Hold began: it may be that a pull can be had again.
func (f *Freshness) Look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = time.Time{}
}

// Arm has looks wait for renew, from now on, when the known state is too old. Renew returns
// when it has called Answered, Failed or Hold; or when it was broken off, to be called
// again. First says that it was not armed before.
func (f *Freshness) Arm(renew func()) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = f.renew == nil
	f.renew = renew
	return first
}

// until is when the known state is not shown any more without another question. It counts
// from when the remote was asked, since changes pushed after that may be missing. A
// clock that was set back makes nothing younger. mu guards it.
func (f *Freshness) until() time.Time {
	end := f.held
	if f.stale != nil {
		end = f.now().Add(Recheck)
	}
	if own := f.last.Add(f.ttl); f.owed == "" && own.After(end) {
		end = own
	}
	if end.Sub(f.now()) > max(f.ttl, Recheck) {
		return time.Time{}
	}
	return end
}

// Believed is how long the known state may be shown without another question, also by the
// kernel; 0: not without Wait.
func (f *Freshness) Believed() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renew == nil {
		return Recheck
	}
	return max(0, f.until().Sub(f.now()))
}

// Wait returns when the known state may be shown to a program that looks now: it is young
// enough, or was renewed, or cannot be. All callers meanwhile share one renewal, which
// goes on when ctx ends; the error is its cause.
func (f *Freshness) Wait(ctx context.Context) error {
	for arrived := f.now(); ; {
		f.mu.Lock()
		if f.renew == nil || f.until().After(arrived) {
			f.mu.Unlock()
			return nil
		}
		if f.run == nil {
			f.run = make(chan struct{})
			go f.renewal(f.renew, f.run)
		}
		run := f.run
		f.mu.Unlock()
		select {
		case <-run:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *Freshness) renewal(renew func(), run chan struct{}) {
	renew()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run == run {
		f.endRun()
	}
}
