// Package audit keeps the record of acts that were allowed or refused.
//
// It knows a fixed set of events, one struct each, and writes one JSON
// object per line to a file that is only ever appended to. It promises that
// a record is whole or absent (one write(2) with O_APPEND each, so that
// several processes may share a file), that its fields are names and
// reasons and never a secret's value, and that Write returns only when the
// kernel has the record; a reveal or a denial is also on the disk by then,
// since an attacker who is refused may try to crash the machine next, and
// AIP-19 makes a reveal without its record a fault.
//
//	log, err := audit.Open(path, audit.Options{})
//	err = log.Write(audit.Reveal{Slug: "org/acme/s3-rw", Workspace: "@acme/ops"})
//
// A caller that cannot write a record must not do the act. Every event is
// written before its act, and before a value that was obtained is handed
// over. The file is not rotated by us; a
// rotation that renames it is noticed, and the next record opens a new one.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Options of Open. The zero value works.
type Options struct {
	Now func() time.Time // nil: time.Now

	// WhileFull runs do, which writes a record, and again when it has made room on a
	// full disk; nil: do runs once.
	WhileFull func(do func() error) error
}

// A Log is an open audit file, safe for concurrent use. A nil *Log stands for
// no audit file: Write does nothing.
type Log struct {
	path string
	o    Options

	mu sync.Mutex // guards f
	f  *os.File
}

// maxText bounds each text of a record, in bytes. A manifest chooses some
// of them, and must not fill the disk with one.
const maxText = 1024

// Open opens or creates the file at path, mode 0600. A symbolic link, a
// file of another user, one that others can read or write, and one with a
// second name are refused.
func Open(path string, o Options) (*Log, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.WhileFull == nil {
		o.WhileFull = func(do func() error) error { return do() }
	}
	l := &Log{path: path, o: o}
	err := o.WhileFull(func() (err error) {
		l.f, err = open(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func open(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, fmt.Errorf("stat %s: %w", path, err)
	}
	if reason := refuse(&st); reason != "" {
		f.Close()
		return nil, fmt.Errorf("%s %s: move it away, a new one is made", path, reason)
	}
	return f, nil
}

func refuse(st *unix.Stat_t) string {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return "is not a regular file"
	case int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	case st.Mode&0o077 != 0:
		return "is open to others"
	case st.Nlink != 1:
		return "has another name"
	}
	return ""
}

// Close ends the log. Writing afterwards is an error.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// Write appends one record. When it fails the act must not be done.
func (l *Log) Write(r Record) error {
	if l == nil {
		return nil
	}
	line, err := encode(r, l.o.Now())
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.o.WhileFull(func() error { return lockedLog{l}.append(line) }); err != nil {
		return err
	}
	if r.durable() {
		if err := unix.Fdatasync(int(l.f.Fd())); err != nil {
			return fmt.Errorf("sync %s: %w", l.path, err)
		}
	}
	return nil
}

// lockedLog is a Log whose mutex the caller has locked.
type lockedLog struct{ *Log }

// append writes a line; a full disk takes all of it or nothing.
func (l lockedLog) append(line []byte) error {
	if err := l.follow(); err != nil {
		return err
	}
	end, err := l.f.Seek(0, io.SeekEnd)
	if err == nil {
		err = unix.Fallocate(int(l.f.Fd()), unix.FALLOC_FL_KEEP_SIZE, end, int64(len(line)))
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) { // the write reports every other error
		return fmt.Errorf("write %s: %w", l.path, err)
	}
	if _, err := l.f.Write(line); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// follow opens the file anew when its name was given to another, or to
// none, by a rotation.
func (l lockedLog) follow() error {
	var named, open_ unix.Stat_t
	if err := unix.Fstat(int(l.f.Fd()), &open_); err != nil {
		return fmt.Errorf("the audit log is closed: %w", err)
	}
	err := unix.Lstat(l.path, &named)
	if err == nil && named.Ino == open_.Ino && named.Dev == open_.Dev {
		return nil
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	f, err := open(l.path)
	if err != nil {
		return err
	}
	l.f.Close()
	l.f = f
	return nil
}

// header stands before the fields of every record.
type header struct {
	Time  string `json:"time"` // RFC 3339, UTC
	Event string `json:"event"`
	PID   int    `json:"pid"`
}

func encode(r Record, now time.Time) ([]byte, error) {
	h, err := json.Marshal(header{now.UTC().Format(time.RFC3339Nano), r.event(), os.Getpid()})
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	body, err := json.Marshal(r.bounded())
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if len(body) > 2 {
		h = append(append(h[:len(h)-1], ','), body[1:]...)
	}
	return append(h, '\n'), nil
}
