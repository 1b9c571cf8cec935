package table

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that Pebble uses. It differs from a plain one in two ways.
//
// Syncing a log does nothing until sync is called. A commit of Pebble that is to be synced waits
// for write(2), which survives the end of the process, and not for the disk. All other files are
// synced as Pebble wants it, and so is a log before it is closed: otherwise a power cut would
// leave a manifest that names lost tables, or a log that goes on behind a hole in an earlier one.
//
// And where Pebble would end the process, because a log or manifest cannot be written, it
// freezes: it tells the table, which fails, and from then on pretends success and changes
// nothing. The files stay as if the process had been killed at that moment.
type disk struct {
	vfs.FS
	logs    string // the directory of logs
	noSpace func()
	fail    func(error)

	frozen  atomic.Bool
	opening atomic.Bool   // a full disk is an error, and nothing to wait for
	closing chan struct{} // closed: no goroutine waits any more
	pauses  atomic.Int64  // since the last success
	backlog *backlog
	mark    mark
	spare   spare

	mu   sync.Mutex // guards the rest
	open []*file    // logs; the last one is written to
	next *syncRun   // later callers join it

	turn sync.Mutex // held over the one sync that runs
}

func newDisk(base vfs.FS, noSpace func(), fail func(error)) *disk {
	if noSpace == nil {
		noSpace = func() {}
	}
	return &disk{FS: vfs.OnDiskFull(base, noSpace), noSpace: noSpace, fail: fail,
		backlog: newBacklog(), closing: make(chan struct{})}
}

// freeze is for an error after which Pebble would not know the state of the disk.
func (d *disk) freeze(err error) {
	d.fail(err) // first: a caller that waits for a pretended success must find it
	d.frozen.Store(true)
	d.backlog.change(func() { d.backlog.frozen = true })
}

// pause keeps Pebble, which tries again for ever and at once, from taking a
// pause keeps Pebble, which tries again for ever and at once, from taking a processor and a
// disk for it: each pause is twice as long as the one before. Only Close waits for the
// goroutine, and it ends the pause.
func (d *disk) pause() {
	wait := time.NewTimer(min(leastPause<<min(d.pauses.Add(1)-1, 10), mostPause))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-d.closing:
	}
}

const (
	leastPause = 100 * time.Millisecond
	mostPause  = 3 * time.Second
)

func (d *disk) isClosing() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// cannotOpen reports whether an error ends an open: Pebble would wait for room without end,
// and without giving a reason.
func (d *disk) cannotOpen(err error) bool { return d.opening.Load() && isFull(err) }

// role is the part that a file plays for Pebble.
type role uint8

const (
	plain role = iota // Pebble deals with errors
	vital             // errors would end the process
	log
)

func (d *disk) role(name string) role {
	switch base := d.PathBase(name); {
	case d.logs != "" && d.PathDir(name) == d.logs && strings.HasSuffix(base, ".log"):
		return log
	case strings.HasPrefix(base, "MANIFEST-"), strings.HasPrefix(base, "marker."):
		return vital
	}
	return plain
}

// Unwrap gives the file system below.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// Create makes a file.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(name, c, func() (vfs.File, error) { return d.FS.Create(name, c) })
}

// ReuseForWrite makes a file out of an old one.
func (d *disk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.create(newname, c, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, c) })
}

func (d *disk) create(name string, c vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	r, room := d.role(name), int64(0)
	if r == log {
		d.backlog.begin()
	}
	if r == plain && d.backlog.isFailing() {
		d.pause()
	}
	if d.frozen.Load() {
		return d.nowhere(r)
	}
	var f vfs.File
	var err error
	if r == log {
		f, room, err = d.beginLog(name, c, create)
	} else {
		f, err = create()
	}
	switch {
	case err != nil && r == plain && !d.cannotOpen(err):
		return nil, err
	case err != nil:
		d.freeze(err)
		return d.nowhere(r)
	}
	watched := &file{File: f, disk: d, role: r}
	watched.room.Store(room)
	if r == log {
		watched.number, _ = logNumber(d.PathBase(name))
		d.mark.wrote(watched.number, 0)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open = append(d.open, watched)
	}
	return watched, nil
}

// nowhere is a file that accepts writes and keeps nothing.
func (d *disk) nowhere(r role) (vfs.File, error) {
	f, err := vfs.NewMem().Create("nowhere", vfs.WriteCategoryUnspecified)
	return &file{File: f, disk: d, role: r}, err
}

// Open opens a file for reading. On a frozen disk files may be missing that Pebble
// takes for written.
func (d *disk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, o...)
	if d.frozen.Load() && errors.Is(err, fs.ErrNotExist) {
		d.pause()
		return nil, fmt.Errorf("%q was never written: %w", name, syscall.EIO)
	}
	return f, err
}

// OpenDir opens a directory for syncing.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d, role: vital}, nil
}

// Remove, Rename, Link and MkdirAll do nothing on a frozen disk.

func (d *disk) Remove(name string) error {
	return d.unlessFrozen(func() error { return d.FS.Remove(name) })
}

func (d *disk) RemoveAll(name string) error {
	return d.unlessFrozen(func() error { return d.FS.RemoveAll(name) })
}

func (d *disk) Rename(oldname, newname string) error {
	return d.unlessFrozen(func() error { return d.FS.Rename(oldname, newname) })
}

func (d *disk) Link(oldname, newname string) error {
	return d.unlessFrozen(func() error { return d.FS.Link(oldname, newname) })
}

func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	return d.unlessFrozen(func() error { return d.FS.MkdirAll(dir, perm) })
}

func (d *disk) unlessFrozen(change func() error) error {
	if d.frozen.Load() {
		return nil
	}
	return change()
}

// current is the log that is written to; nil when there is none.
func (d *disk) current() *file {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) == 0 {
		return nil
	}
	return d.open[len(d.open)-1]
}

func (d *disk) closed(f *file) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(o *file) bool { return o == f })
}

// syncRun is a sync that callers wait for.
type syncRun struct{ done chan struct{} }

// sync makes everything that was written to the logs before the call survive a
// power cut, unless the disk is frozen when it returns. Callers that come
// while another sync runs share the next.
func (d *disk) sync() {
	d.mu.Lock()
	run, leads := d.next, false
	if run == nil {
		run, leads = &syncRun{done: make(chan struct{})}, true
		d.next = run
	}
	d.mu.Unlock()
	if leads {
		d.run(run)
	}
	<-run.done
}

func (d *disk) run(run *syncRun) {
	d.turn.Lock()
	defer d.turn.Unlock()
	d.mu.Lock()
	d.next = nil
	files := slices.Clone(d.open)
	d.mu.Unlock()
	for _, f := range files {
		f.flush()
	}
	close(run.done)
}
