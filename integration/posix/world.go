package posix

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// T is the world of one case: its directory and what went wrong in it. It is
// used from the case's goroutine only.
type T struct {
	// Dir is the case's own directory, 0755 and empty.
	Dir string

	failures []string
	undo     []func()
	fds      map[int]bool // held
}

// errStop ends a case that cannot go on.
var errStop = errors.New("case stopped")

func (t *T) errorf(format string, args ...any) {
	at := ""
	for skip := 2; skip < 8; skip++ {
		_, file, line, ok := runtime.Caller(skip)
		if !ok {
			break
		}
		if base := filepath.Base(file); base != "world.go" && base != "identity.go" {
			at = fmt.Sprintf("%s:%d: ", base, line)
			break
		}
	}
	t.failures = append(t.failures, at+fmt.Sprintf(format, args...))
}

func (t *T) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	panic(errStop)
}

func (t *T) recoverPanic() {
	if r := recover(); r != nil && r != errStop {
		t.failures = append(t.failures, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
	}
}

// later runs f when the case ends, last added first.
func (t *T) later(f func()) { t.undo = append(t.undo, f) }

func (t *T) cleanup() {
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i]()
	}
}

// is checks that a call ended with this errno; 0 stands for success.
func (t *T) is(what string, err error, want unix.Errno) {
	got := unix.Errno(0)
	if err != nil && !errors.As(err, &got) {
		t.errorf("%s: %v is no errno", what, err)
		return
	}
	if got != want {
		t.errorf("%s: got %s, want %s", what, errnoName(got), errnoName(want))
	}
}

// isOne checks that a call ended with one of these.
func (t *T) isOne(what string, err error, want ...unix.Errno) {
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	t.errorf("%s: got %v, want one of %v", what, err, want)
}

// ok ends the case unless the call worked.
func (t *T) ok(what string, err error) {
	if err != nil {
		t.fatalf("%s: %v", what, err)
	}
}

// eq checks that two values are the same.
func (t *T) eq(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		t.errorf("%s: got %s, want %s", what, short(got), short(want))
	}
}

func short(v any) string {
	s := fmt.Sprintf("%#v", v)
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return s
}

func errnoName(e unix.Errno) string {
	if e == 0 {
		return "success"
	}
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return e.Error()
}

// p is a path in the case's directory.
func (t *T) p(parts ...string) string {
	return filepath.Join(append([]string{t.Dir}, parts...)...)
}

// file makes a file, 0644, and returns its path.
func (t *T) file(name, content string) string {
	path := t.p(name)
	t.ok("make "+name, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// dir makes a directory, 0755, and returns its path.
func (t *T) dir(name string) string {
	path := t.p(name)
	t.ok("mkdir "+name, unix.Mkdir(path, 0o755))
	return path
}

// open opens a path until the case ends.
func (t *T) open(path string, flags int, mode uint32) int {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
	t.ok("open "+filepath.Base(path), err)
	return t.hold(fd)
}

// hold closes a descriptor when the case ends, unless shut did by then.
func (t *T) hold(fd int) int {
	if t.fds == nil {
		t.fds = make(map[int]bool)
	}
	t.fds[fd] = true
	t.later(func() {
		if t.fds[fd] { // else the number may be that of a file of whoever else runs here
			t.shut(fd)
		}
	})
	return fd
}

// shut closes a descriptor that is held.
func (t *T) shut(fd int) {
	if !t.fds[fd] {
		t.fatalf("descriptor %d is not held", fd)
	}
	delete(t.fds, fd)
	t.is("close", unix.Close(fd), 0)
}

// try opens a path and closes it: for the errno alone.
func (t *T) try(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// stat is lstat(2), which must work.
func (t *T) stat(path string) unix.Stat_t {
	var st unix.Stat_t
	t.ok("lstat "+filepath.Base(path), unix.Lstat(path, &st))
	return st
}

func (t *T) fstat(fd int) unix.Stat_t {
	var st unix.Stat_t
	t.ok("fstat", unix.Fstat(fd, &st))
	return st
}

// gone checks that a name does not exist.
func (t *T) gone(path string) {
	var st unix.Stat_t
	t.is("lstat "+filepath.Base(path), unix.Lstat(path, &st), unix.ENOENT)
}

// content checks what a file holds, by a new open.
func (t *T) content(path, want string) {
	got, err := os.ReadFile(path)
	t.ok("read "+filepath.Base(path), err)
	if !bytes.Equal(got, []byte(want)) {
		t.errorf("content of %s: got %d bytes %s, want %d bytes %s",
			filepath.Base(path), len(got), short(string(got)), len(want), short(want))
	}
}

// pread reads n bytes at off, fewer at the end.
func (t *T) pread(fd int, n int, off int64) string {
	buf := make([]byte, n)
	got, err := unix.Pread(fd, buf, off)
	t.ok("pread", err)
	return string(buf[:got])
}

func (t *T) write(fd int, s string) {
	n, err := unix.Write(fd, []byte(s))
	t.ok("write", err)
	t.eq("bytes written", n, len(s))
}

// perm is permission, set-id and sticky bits, shown in octal.
type perm uint32

func (p perm) GoString() string { return fmt.Sprintf("%#o", uint32(p)) }

func (t *T) mode(path string) perm { return perm(t.stat(path).Mode & 0o7777) }

func (t *T) fmode(fd int) perm { return perm(t.fstat(fd).Mode & 0o7777) }

func zeros(n int) string { return strings.Repeat("\x00", n) }

// tick returns when a change made from now on gets a later time stamp: the
// kernel stamps files with its coarse clock.
func (t *T) tick() {
	start := coarse()
	for coarse() <= start {
		time.Sleep(time.Millisecond)
	}
}

// coarse is the clock that the kernel stamps files with.
func coarse() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// newer checks that a time stamp moved forward.
func (t *T) newer(what string, got, before unix.Timespec) {
	if got.Nano() <= before.Nano() {
		t.errorf("%s: got %d.%09d, want later than %d.%09d", what, got.Sec, got.Nsec, before.Sec, before.Nsec)
	}
}

// orNil makes success an errno that isOne can be asked for.
func orNil(err error) error {
	if err == nil {
		return unix.Errno(0)
	}
	return err
}
