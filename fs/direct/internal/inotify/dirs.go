package inotify

import (
	"errors"
	"fmt"
	"sync"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// events leaves out IN_OPEN, IN_ACCESS and IN_CLOSE_NOWRITE: reading changes nothing.
const events = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// RetryWatch is how long no watch is tried after one was refused, and maxRetryWatch the longest
// such time after repeated refusals: each success causes a walk through the whole tree.
const (
	RetryWatch    = 10 * time.Second
	maxRetryWatch = 10 * time.Minute
)

// dirs are the watched directories.
type dirs struct {
	now    func() time.Time
	refuse func(int) bool
	failed func(error)

	mu      sync.Mutex // guards the fields below
	fd      int
	by      map[int32]wsfs.Ino
	closed  bool
	why     string    // the last failure to add a watch
	retryAt time.Time // when to try again after it
	retry   time.Duration
}

func (d *dirs) open(fd int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fd, d.closed = fd, false
}

// close reports whether this call closed it.
func (d *dirs) close() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.closed
	d.closed = true
	return !was
}

func (d *dirs) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// add also returns whether it is the first watch after others were refused.
func (d *dirs) add(dir wsfs.Ino, path string) (wd int32, recovered, ok bool) {
	wd, recovered, err := d.try(dir, path)
	if err != nil {
		d.fail(err)
	}
	return wd, recovered, err == nil && wd > 0
}

// try returns no watch, and no error, before the time of the next try.
func (d *dirs) try(dir wsfs.Ino, path string) (int32, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.why != "" && d.now().Before(d.retryAt) {
		return 0, false, nil
	}
	if d.refuse != nil && d.refuse(len(d.by)) {
		return 0, false, unix.ENOSPC
	}
	wd, err := unix.InotifyAddWatch(d.fd, path, events)
	if err != nil {
		return 0, false, err
	}
	recovered := d.why != ""
	d.why = ""
	d.by[int32(wd)] = dir
	return int32(wd), recovered, nil
}

// fail notes that a watch was refused, and reports the first refusal.
func (d *dirs) fail(err error) {
	if news := d.note(err); news != nil {
		d.failed(news)
	}
}

// note returns the failure to report, or nil.
func (d *dirs) note(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	news := d.why == ""
	d.why = err.Error()
	switch {
	case errors.Is(err, unix.ENOSPC):
		d.why = "fs.inotify.max_user_watches is used up"
	case errors.Is(err, unix.EMFILE):
		d.why = "fs.inotify.max_user_instances or the limit of open files is used up"
	}
	d.retry = min(max(2*d.retry, RetryWatch), maxRetryWatch)
	d.retryAt = d.now().Add(d.retry)
	if !news {
		return nil
	}
	return failure(d.why)
}

func failure(why string) error {
	if why == "" {
		return nil
	}
	return fmt.Errorf("directories are without a watch, and changes by others may show a second late: %s", why)
}

func (d *dirs) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return failure(d.why)
}

// walked is called when no job is left: if all directories got a watch, the next refusal counts
// as the first.
func (d *dirs) walked() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why == "" {
		d.retry = 0
	}
}

func (d *dirs) remove(wd int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.by, wd)
	if !d.closed {
		unix.InotifyRmWatch(d.fd, uint32(wd))
	}
}

// removed handles a watch that the kernel removed.
func (d *dirs) removed(wd int32) (dir wsfs.Ino, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, ok = d.by[wd]
	delete(d.by, wd)
	return dir, ok
}

func (d *dirs) of(wd int32) (dir wsfs.Ino, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, ok = d.by[wd]
	return dir, ok
}

func (d *dirs) all() []Watch {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Watch, 0, len(d.by))
	for wd, dir := range d.by {
		all = append(all, Watch{wd, dir})
	}
	return all
}

func (d *dirs) status() (watched int, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.by), d.why
}
