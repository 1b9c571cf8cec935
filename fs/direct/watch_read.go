package direct

import (
	"bytes"
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// batchDelay collects what belongs together: a file that is created,
	// written and closed is judged once. It is part of the 100 ms within which
	// a change shows.
	batchDelay = 10 * time.Millisecond

	// retryDelay is for names that a request is changing right now.
	retryDelay = 10 * time.Millisecond

	eventHead = 16
)

// A batch is what the events of a few milliseconds come to.
type batch struct {
	number   uint64 // from 1 on
	order    []key
	mask     map[key]uint32
	gone     []int32 // watches that the kernel removed
	overflow bool
}

// read is the goroutine that takes events from the kernel. It waits in poll(2)
// and not in the runtime's poller, which the kernel would wake for every event,
// also while nobody waits for one: three times for each file that a program
// writes.
func (w *watch) read() {
	defer w.done.Done()
	buf := make([]byte, 64<<10)
	for !w.stopped() {
		if w.wait() {
			time.Sleep(batchDelay)
		}
		b := batch{number: w.nextBatch(), mask: map[key]uint32{}}
		w.drain(buf, &b) // also when time is up: what is due may not be over
		w.handle(&b)
	}
}

// wait returns when there are events (true), or what was put off is due, or the
// bell rings.
func (w *watch) wait() (events bool) {
	fds := [2]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(w.bell), Events: unix.POLLIN}}
	_, err := unix.Poll(fds[:], w.timeout())
	if err != nil {
		return false // EINTR
	}
	if fds[1].Revents != 0 {
		w.bell.silence()
	}
	return fds[0].Revents != 0
}

// timeout is for poll(2): how many milliseconds until something is due, rounded
// up; -1 is never.
func (w *watch) timeout() int {
	w.judging.mu.Lock()
	defer w.judging.mu.Unlock()
	if w.judging.armed.IsZero() {
		return -1
	}
	return int(max(0, (time.Until(w.judging.wake)+time.Millisecond-1)/time.Millisecond))
}

// A bell is an eventfd(2).
type bell int

func newBell() (bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return bell(fd), err
}

// ring wakes whoever waits now, or the next who does. It fails only where the
// bell has rung 2^64 times and nobody came.
func (b bell) ring() {
	_, _ = unix.Write(int(b), binary.NativeEndian.AppendUint64(nil, 1))
}

func (b bell) silence() {
	var n [8]byte
	_, _ = unix.Read(int(b), n[:])
}

func (b bell) close() { unix.Close(int(b)) }

// drain takes what else is in the queue, without waiting.
func (w *watch) drain(buf []byte, b *batch) {
	for {
		n, err := unix.Read(w.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		w.decode(buf[:n], b)
	}
}

// decode adds raw events to a batch.
func (w *watch) decode(raw []byte, b *batch) {
	if w.tune.dropEvents != nil && w.tune.dropEvents() {
		b.overflow = true
		return
	}
	for len(raw) >= eventHead {
		wd := int32(binary.NativeEndian.Uint32(raw))
		mask := binary.NativeEndian.Uint32(raw[4:])
		size := eventHead + int(binary.NativeEndian.Uint32(raw[12:]))
		name := raw[eventHead:size]
		raw = raw[size:]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		w.collect(b, wd, mask, name)
	}
}

func (w *watch) collect(b *batch, wd int32, mask uint32, name []byte) {
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		b.overflow = true
		return
	case mask&unix.IN_IGNORED != 0:
		b.gone = append(b.gone, wd)
		return
	}
	dir, ok := w.dirOf(wd)
	if !ok {
		return
	}
	k := key{dir, string(name)}
	if _, ok := b.mask[k]; !ok {
		b.order = append(b.order, k)
	}
	b.mask[k] |= mask
}

// handle judges a batch, and what was put off.
func (w *watch) handle(b *batch) {
	now := w.v.now()
	j := &w.judging
	j.mu.Lock()
	for _, k := range j.takeRetries() {
		w.judge(k.key, k.mask, k.batch, now)
	}
	for _, k := range b.order {
		w.judge(k, b.mask[k], b.number, now)
	}
	w.settleDue(now)
	switch {
	case !b.overflow:
		j.good = now
	case !w.behind.Load():
		j.lost = j.good
	}
	j.armed = time.Time{}
	w.arm(j.due(now), now)
	j.mu.Unlock()
	for _, wd := range b.gone {
		w.lost(wd)
	}
	if b.overflow {
		w.overflow(now)
	}
	w.purge(now)
}
