package inotify

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// batchDelay collects related events: a file that is created, written and closed is
	// reported once. It is part of the 100 ms within which a change shows.
	batchDelay = 10 * time.Millisecond

	eventHead = 16
)

// A queue is the kernel's queue of events.
type queue struct {
	fd     int
	bell   bell // wakes the reader
	alarm  alarm
	lose   func() bool
	buf    []byte
	number atomic.Uint64 // of the last batch that began
}

func (q *queue) open() (err error) {
	if q.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		return err
	}
	if q.bell, err = newBell(); err != nil {
		unix.Close(q.fd)
		return err
	}
	q.buf = make([]byte, 64<<10)
	return nil
}

func (q *queue) close() {
	unix.Close(q.fd)
	q.bell.close()
}

// next waits for events, or until the alarm goes off or the bell rings.
func (q *queue) next(d *dirs) *Batch {
	if q.wait() {
		time.Sleep(batchDelay)
	}
	q.alarm.clear()
	c := collector{dirs: d, at: map[Key]int{}, Batch: Batch{Number: q.number.Add(1)}}
	q.drain(&c) // also after the alarm: pending changes may go on
	return &c.Batch
}

// wait reports whether there are events. It waits in poll(2) and not in the runtime's poller,
// which the kernel would wake for every event, also while no goroutine waits for one: three
// times for each file that a program writes.
func (q *queue) wait() (events bool) {
	fds := [2]unix.PollFd{{Fd: int32(q.fd), Events: unix.POLLIN}, {Fd: int32(q.bell), Events: unix.POLLIN}}
	_, err := unix.Poll(fds[:], q.alarm.timeout())
	if err != nil {
		return false // EINTR
	}
	if fds[1].Revents != 0 {
		q.bell.silence()
	}
	return fds[0].Revents != 0
}

func (q *queue) wake(in time.Duration) {
	if q.alarm.set(in) {
		q.bell.ring()
	}
}

// drain takes the events in the queue, without waiting.
func (q *queue) drain(c *collector) {
	for {
		n, err := unix.Read(q.fd, q.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		if q.lose != nil && q.lose() {
			c.Overflow = true
			continue
		}
		c.decode(q.buf[:n])
	}
}

// A collector makes a batch of events.
type collector struct {
	dirs *dirs
	at   map[Key]int // places in Reports
	Batch
}

// decode adds raw events.
func (c *collector) decode(raw []byte) {
	for len(raw) >= eventHead {
		wd := int32(binary.NativeEndian.Uint32(raw))
		mask := binary.NativeEndian.Uint32(raw[4:])
		size := eventHead + int(binary.NativeEndian.Uint32(raw[12:]))
		name := raw[eventHead:size]
		raw = raw[size:]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		c.add(wd, mask, name)
	}
}

func (c *collector) add(wd int32, mask uint32, name []byte) {
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		c.Overflow = true
		return
	case mask&unix.IN_IGNORED != 0:
		if dir, ok := c.dirs.removed(wd); ok {
			c.Gone = append(c.Gone, Watch{wd, dir})
		}
		return
	}
	dir, ok := c.dirs.of(wd)
	if !ok {
		return
	}
	n := Key{dir, string(name)}
	i, known := c.at[n]
	if !known {
		i = len(c.Reports)
		c.at[n] = i
		c.Reports = append(c.Reports, Report{Key: n})
	}
	c.Reports[i].Mask |= mask
}

// An alarm is the time at which the reader wakes without an event.
type alarm struct {
	mu   sync.Mutex
	wake time.Time // zero: not
}

// set makes the reader wake within a time, and reports whether that is earlier than before.
func (a *alarm) set(in time.Duration) bool {
	at := time.Now().Add(in)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.wake.IsZero() && !at.Before(a.wake) {
		return false
	}
	a.wake = at
	return true
}

func (a *alarm) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake = time.Time{}
}

// timeout is for poll(2): how many milliseconds until the alarm, rounded up; -1 is never.
func (a *alarm) timeout() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wake.IsZero() {
		return -1
	}
	return int(max(0, (time.Until(a.wake)+time.Millisecond-1)/time.Millisecond))
}

// A bell is an eventfd(2).
type bell int

func newBell() (bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return bell(fd), err
}

// ring wakes the reader, now or when it waits next. It fails only if the bell has rung 2^64
// times unheard.
func (b bell) ring() {
	_, _ = unix.Write(int(b), binary.NativeEndian.AppendUint64(nil, 1))
}

func (b bell) silence() {
	var n [8]byte
	_, _ = unix.Read(int(b), n[:])
}

func (b bell) close() { unix.Close(int(b)) }
